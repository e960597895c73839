"""Errors of HTTP calls: why there is no response, and whether the server may have received the request."""


class CallError(Exception):
    """A call has no complete response.

    `sent` is whether any byte of the request may have reached the server. If so, the server may have
    processed it, whatever its method, and only the caller can decide to send it again.
    """

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class NotConnected(CallError):
    """No connection to `host` and `port` of the server, or of the proxy in front of it.

    `cause` is the error of the system, of TLS (`ssl.SSLError`) or of the outbound guard
    (`ForbiddenTarget`).
    """

    def __init__(self, host: str, port: int, cause: OSError | None) -> None:
        super().__init__(f"no connection to {host}:{port}", sent=False)
        self.host = host
        self.port = port
        self.cause = cause


class NameNotResolved(NotConnected):
    """The system's resolver has no address for the host, or gave no answer."""


class NoConnectionInTime(CallError):
    """No connection was established, or none of the pool became free, within the time for that."""

    def __init__(self) -> None:
        super().__init__("no connection within the time for it", sent=False)


class CallTimeout(CallError, TimeoutError):
    """No complete response within the call's timeout."""

    def __init__(self, *, sent: bool) -> None:
        super().__init__("no complete response in time", sent=sent)


class ConnectionLost(CallError):
    """The connection was closed or reset before the response was complete.

    `in_body` is whether the response's head had been received.
    """

    def __init__(self, *, in_body: bool = False) -> None:
        super().__init__("the connection was closed before the response was complete", sent=True)
        self.in_body = in_body


class InvalidResponse(CallError):
    """The response is not valid HTTP/1.1, or exceeds a limit."""

    def __init__(self, why: str) -> None:
        super().__init__(why, sent=True)
