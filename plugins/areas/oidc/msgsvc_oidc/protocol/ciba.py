"""Backchannel authentication requests (OpenID Connect Client-Initiated Backchannel Authentication Core 1.0),
in poll mode."""

import re
from dataclasses import dataclass
from typing import Any, Literal

from msgsvc_core.kernel.visible_text import has_visible
from msgsvc_oidc.protocol.authentication import requires_number
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import OAuthError, invalid_request
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.protocol.polling import requested_scopes

#: Characters of a message: section 7.1 wants one that can be compared at a glance.
MAX_MESSAGE_LENGTH = 100

HintKind = Literal["login_hint", "id_token_hint"]

#: The ways to name a person (section 7.1).
_HINTS = ("login_hint", "id_token_hint", "login_hint_token")

#: Parameters for features that the provider does not have, and does not announce.
_UNSUPPORTED = ("request", "user_code", "login_hint_token")

_SECONDS = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackchannelRequest:
    """A valid request of a client."""

    scopes: tuple[str, ...]
    hint_kind: HintKind
    hint: str
    #: What the person is shown beside the question; empty for none.
    binding_message: str
    #: Seconds; None for the provider's own.
    requested_expiry_s: int | None
    number_matching: bool


def read_request(parameters: Parameters, client: Client) -> BackchannelRequest:
    """The request (section 7.1). Raises `OAuthError` with the registered code (section 13).

    `client_notification_token` is for modes that this provider does not have, and ignored.
    """
    hints = [name for name in _HINTS if name in parameters]
    if len(hints) != 1:
        raise invalid_request("exactly one of login_hint and id_token_hint is needed")
    for name in _UNSUPPORTED:
        if name in parameters:
            raise invalid_request(f"{name} is not supported")
    scopes = requested_scopes(parameters, client)
    kind: HintKind = "id_token_hint" if hints == ["id_token_hint"] else "login_hint"
    return BackchannelRequest(
        scopes=scopes,
        hint_kind=kind,
        hint=parameters[kind],
        binding_message=_message(parameters),
        requested_expiry_s=_expiry(parameters),
        number_matching=client.number_matching or requires_number(parameters.words("acr_values")),
    )


def backchannel_response(
    auth_req_id: str, *, expires_in_s: int, interval_s: int, match_number: int | None
) -> dict[str, Any]:
    """The response (section 7.3). `match_number` is a member of our own: the client shows it to the person,
    who chooses it in the messenger."""
    found: dict[str, Any] = {
        "auth_req_id": auth_req_id,
        "expires_in": expires_in_s,
        "interval": interval_s,
    }
    return found if match_number is None else {**found, "match_number": match_number}


def unknown_user_id() -> OAuthError:
    """The hint names nobody (section 13)."""
    return OAuthError("unknown_user_id", "the hint names nobody who is known here")


def unreachable() -> OAuthError:
    """The person can't be asked: a refusal of the provider (section 13)."""
    description = "the person has left or blocked the bot, or can not be asked by it"
    return OAuthError("access_denied", description, status=403)


def invalid_binding_message(description: str) -> OAuthError:
    """The message can't be shown (section 13)."""
    return OAuthError("invalid_binding_message", description)


def _message(parameters: Parameters) -> str:
    message = parameters.get("binding_message", "")
    if not message:
        return ""
    if len(message) > MAX_MESSAGE_LENGTH:
        raise invalid_binding_message(f"at most {MAX_MESSAGE_LENGTH} characters")
    if not message.isprintable() or not has_visible(message):
        raise invalid_binding_message("one line of printable characters")
    return message


def _expiry(parameters: Parameters) -> int | None:
    text = parameters.get("requested_expiry")
    if text is None:
        return None
    if not _SECONDS.fullmatch(text):
        raise invalid_request("requested_expiry must be a positive number of seconds")
    return int(text)
