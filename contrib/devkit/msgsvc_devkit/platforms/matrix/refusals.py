"""Errors of the fake: a status, and the specification's `errcode` and `error`."""


class Refused(Exception):
    """A call that the homeserver refuses."""

    def __init__(
        self, status: int, code: str, message: str, retry_after_s: float | None = None
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s


def malformed(message: str) -> Refused:
    """The request does not match the specification."""
    return Refused(400, "M_BAD_JSON", message)


def wrong_parameter(message: str) -> Refused:
    return Refused(400, "M_INVALID_PARAM", message)


def token_refused() -> Refused:
    return Refused(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.")


def not_in_room() -> Refused:
    return Refused(403, "M_FORBIDDEN", "User is not in the room.")


def not_found(what: str) -> Refused:
    return Refused(404, "M_NOT_FOUND", f"{what} not found.")


def too_many(retry_after_s: float | None) -> Refused:
    return Refused(429, "M_LIMIT_EXCEEDED", "Too Many Requests", retry_after_s)


def unavailable() -> Refused:
    return Refused(500, "M_UNKNOWN", "Internal server error")
