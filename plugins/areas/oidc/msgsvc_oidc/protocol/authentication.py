"""How a person proved who they are, in the words of tokens: `acr` and `amr`.

`amr` has the registered value `mca`, an answer over another channel than the browser, and `sms` where that
was a text message to a phone number (RFC 8176, section 2). There is none for mailboxes and homeservers.
`acr` tells which answer it was; there is no registered name for it.
"""

from collections.abc import Sequence

from msgsvc_core.channels import Identity
from msgsvc_core.plugins.sign_ins import SignInMethod

#: Yes was pressed in the bot.
ACR_BUTTON = "urn:msgsvc:acr:button"

#: The number that the page showed was chosen in the bot: the person saw that page.
ACR_NUMBER = "urn:msgsvc:acr:number"

#: The platform's own sign-in page vouches for the person.
ACR_PLATFORM = "urn:msgsvc:acr:platform"

_ACR: dict[SignInMethod, str] = {
    "button": ACR_BUTTON,
    "number": ACR_NUMBER,
    "platform": ACR_PLATFORM,
}

#: What the channel proved, beside `mca`. An account on a messenger is what `mca` says.
_AMR: dict[Identity, tuple[str, ...]] = {
    "account": (),
    "phone": ("sms",),
    "mailbox": ("urn:msgsvc:amr:mailbox",),
    "homeserver": ("urn:msgsvc:amr:homeserver",),
}

#: What tokens may say, for discovery.
ACR_VALUES = tuple(_ACR.values())


def acr_of(method: SignInMethod) -> str:
    """The value of `acr` (OpenID Connect Core 1.0, section 2)."""
    return _ACR[method]


def amr_of(method: SignInMethod, proves: Identity | None) -> list[str]:
    """The value of `amr` (RFC 8176, section 2): the platform's page only says that somebody else
    authenticated the person, for which there is no registered value, so it is empty then. What was
    proven is None for a sign-in of which nobody recorded it, and adds nothing."""
    if method == "platform":
        return []
    return ["mca", *(_AMR[proves] if proves is not None else ())]


def requires_number(acr_values: Sequence[str]) -> bool:
    """Whether a request prefers number matching: it names it before the button."""
    wanted = [value for value in acr_values if value in ACR_VALUES]
    return bool(wanted) and wanted[0] == ACR_NUMBER


def satisfies(method: SignInMethod, acr_values: Sequence[str]) -> bool:
    """Whether an earlier sign-in is what a request prefers. Without known values, any is."""
    wanted = [value for value in acr_values if value in ACR_VALUES]
    return not wanted or acr_of(method) in wanted
