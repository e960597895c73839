"""Errors of the fake: a status, and the schema's Error with `code` and `message`."""


class Refused(Exception):
    """A call that the platform rejects."""

    def __init__(
        self, status: int, code: str, message: str, retry_after_s: float | None = None
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s


def malformed(message: str) -> Refused:
    """The request does not match the schema."""
    return Refused(400, "proto.payload", message)


def token_refused() -> Refused:
    return Refused(401, "verify.token", "Invalid access_token")


def suspended() -> Refused:
    """The user stopped the bot."""
    return Refused(403, "chat.denied", "error.dialog.suspended")


def chat_not_found(chat_id: int) -> Refused:
    return Refused(404, "chat.not.found", f"Chat {chat_id} not found")


def dialog_not_found() -> Refused:
    """The dialog was never started."""
    return Refused(404, "dialog.not.found", "error.dialog.notfound")


def not_ready() -> Refused:
    return Refused(400, "attachment.not.ready", "Key: errors.process.attachment.file.not.processed")


def too_many(retry_after_s: float | None) -> Refused:
    return Refused(429, "too.many.requests", "Too many requests", retry_after_s)


def unavailable() -> Refused:
    return Refused(503, "service.unavailable", "Service unavailable")
