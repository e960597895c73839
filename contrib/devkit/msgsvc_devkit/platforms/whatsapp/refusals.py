"""Errors of the fake: a status, and the Graph API's error with its code (Cloud API: "Error codes")."""

from typing import Any


class Refused(Exception):
    """A call that the platform rejects, or a message that it fails to deliver."""

    def __init__(
        self,
        status: int,
        code: int,
        title: str,
        details: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{status} {code}: {title} {details}")
        self.status = status
        self.code = code
        self.title = title
        self.details = details or title
        self.retry_after_s = retry_after_s

    @property
    def body(self) -> dict[str, Any]:
        """The body of the response."""
        error = {
            "message": f"(#{self.code}) {self.title}",
            "type": "OAuthException",
            "code": self.code,
            "error_data": {"messaging_product": "whatsapp", "details": self.details},
            "fbtrace_id": "AFakeTraceId",
        }
        return {"error": error}

    @property
    def in_status(self) -> dict[str, Any]:
        """The error of a message's status in a webhook call."""
        return {
            "code": self.code,
            "title": self.title,
            "message": self.title,
            "error_data": {"details": self.details},
            "href": "/documentation/business-messaging/whatsapp/support/error-codes",
        }


def malformed(details: str) -> Refused:
    """The request does not match the OpenAPI document."""
    return Refused(400, 100, "Invalid parameter", details)


def token_refused() -> Refused:
    return Refused(401, 190, "Error validating access token")


def no_such_object(object_id: str) -> Refused:
    return Refused(400, 100, f"Unsupported request. Object with ID '{object_id}' does not exist")


def window_closed() -> Refused:
    return Refused(
        400,
        131047,
        "Re-engagement message",
        "Message failed to send because more than 24 hours have passed since the customer last"
        " replied to this number.",
    )


def undeliverable() -> Refused:
    return Refused(400, 131026, "Message undeliverable")


def unpaid() -> Refused:
    return Refused(
        400,
        131042,
        "Business eligibility payment issue",
        "Message failed to send because there were one or more errors related to your payment method.",
    )


def opted_out() -> Refused:
    return Refused(
        400,
        131050,
        "Unable to deliver the message. This recipient has chosen to stop receiving marketing"
        " messages on WhatsApp from your business",
    )


def unavailable() -> Refused:
    return Refused(503, 131016, "Service unavailable")


def too_many(retry_after_s: float | None = None) -> Refused:
    return Refused(400, 130429, "Rate limit hit", "Too many messages", retry_after_s)
