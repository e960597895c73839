"""Why a call failed, for the log of whoever chose its URL."""

import os
from ssl import SSLError

from msgsvc_core.http_client.errors import (
    CallError,
    CallTimeout,
    ConnectionLost,
    NameNotResolved,
    NoConnectionInTime,
    NotConnected,
)
from msgsvc_core.kernel.errors import Finding, Reasons
from msgsvc_core.kernel.storable_text import storable
from msgsvc_core.kernel.values import value_object
from msgsvc_core.security.guard import ForbiddenTarget, NoPublicHost


def _(text: str) -> str:
    """Marks what is translated later."""
    return text


#: Reasons of the operating system and OpenSSL that have translations.
REASONS = frozenset(
    {
        _("Connection refused"),
        _("Connection reset by peer"),
        _("Connection timed out"),
        _("Network is unreachable"),
        _("No route to host"),
        _("certificate has expired"),
        _("handshake"),
        _("no reason given"),
        _("self-signed certificate"),
        _("unable to get local issuer certificate"),
    }
)


#: Characters that are kept of what is wrong with a response: they may quote it.
MAX_REASON_LENGTH = 300

#: The package whose catalogue has these texts.
CORE = "msgsvc_core"


@value_object
class CallFailure:
    """What is recorded of a failed call. `is_forbidden`: the outbound guard refused its target."""

    why: Finding
    is_forbidden: bool = False


def explain_call(error: CallError | ForbiddenTarget, timeout_s: float) -> CallFailure:
    """The reason, without the address that a host name leads to. A name that resolves to our own network is
    reported like an unknown one."""
    cause = error.cause if isinstance(error, NotConnected) else error
    if isinstance(cause, ForbiddenTarget) and not isinstance(cause, NoPublicHost):
        [why] = cause.findings
        return CallFailure(why, is_forbidden=True)
    params: dict[str, object] = {}
    match error:
        case NoPublicHost() | NameNotResolved() | NotConnected(cause=NoPublicHost()):
            msgid = _("the host can't be resolved to public addresses")
        case NotConnected(cause=SSLError() as tls):
            msgid = _("TLS failed: {reason}")
            params["reason"] = _reason(getattr(tls, "verify_message", "") or "handshake")
        case NotConnected(cause=system):
            number = None if system is None else system.errno
            msgid = _("could not connect: {reason}")
            params["reason"] = _reason(os.strerror(number) if number else "no reason given")
        case CallTimeout() | NoConnectionInTime():
            msgid, params["seconds"] = _("no complete answer within {seconds} s"), f"{timeout_s:g}"
        case ConnectionLost(in_body=True):
            msgid = _("the answer broke off")
        case ConnectionLost():
            msgid = _("the connection was closed before an answer came")
        case other:
            msgid = _("the answer is no valid HTTP ({reason})")
            params["reason"] = storable(str(other))[:MAX_REASON_LENGTH]
    return CallFailure(Finding(msgid, params, package=CORE))


def _reason(text: str) -> Reasons | str:
    return Reasons([Finding(text, package=CORE)]) if text in REASONS else text
