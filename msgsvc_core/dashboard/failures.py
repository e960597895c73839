"""Failures of calls to other hosts in the reader's language. They are recorded in English."""

import re
from collections.abc import Sequence
from functools import cache

from msgsvc_core.kernel.i18n import Translate


def _(text: str) -> str:
    """Marks what is translated later."""
    return text


#: What is recorded of a call that got no response; a plugin adds its own.
RECORDED = (
    _("could not connect: {reason}"),
    _("TLS failed: {reason}"),
    _("no complete answer within {seconds} s"),
    _("the answer broke off"),
    _("the answer is no valid HTTP ({reason})"),
    _("the answer is no valid HTTP, or too large"),
    _("the address {address} is not public"),
    _("the connection was closed before an answer came"),
    _("the host can't be resolved to public addresses"),
    _("the host {host} is a local name"),
)

#: Reasons within them, as the operating system and OpenSSL give them.
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


def failure_in_words(translate: Translate, error: str, own: Sequence[str] = ()) -> str:
    """A recorded failure in the reader's language; as it is recorded if it is none of `RECORDED` and `own`.
    The plugin of `translate` has the translations of `own`."""
    for text in (*RECORDED, *own):
        found = _pattern(text).fullmatch(error)
        if found is not None:
            values = found.groupdict()
            if values.get("reason") in REASONS:
                values["reason"] = translate(values["reason"])
            return translate(text, **values)
    return error


@cache
def _pattern(text: str) -> re.Pattern[str]:
    parts = re.split(r"{(\w+)}", text)
    return re.compile(
        "".join(
            f"(?P<{part}>.+)" if index % 2 else re.escape(part) for index, part in enumerate(parts)
        ),
        re.DOTALL,
    )
