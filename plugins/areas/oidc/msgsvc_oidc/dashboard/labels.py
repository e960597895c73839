"""Labels of the pages, and what they say of redirect URIs."""

from msgsvc_core.channels import Identity
from msgsvc_core.kernel.i18n import Translate, explained
from msgsvc_oidc.backchannel_logout.models import LogoutDelivery
from msgsvc_oidc.protocol.clients import CIBA, DEVICE_CODE, AuthMethod, GrantType, Scope
from msgsvc_oidc.protocol.redirect_differences import Difference

#: How deliveries of sign-outs are coloured, beside their word.
STATUS_TONES = {"pending": "info", "delivered": "good", "failed": "bad"}


def statuses(_: Translate) -> dict[str, str]:
    """The label of each status of a delivery."""
    return {"pending": _("Pending"), "delivered": _("Delivered"), "failed": _("Failed")}


def failure(_: Translate, delivery: LogoutDelivery) -> str:
    """Why a logout token was not delivered."""
    return delivery.error if delivery.failure is None else explained([delivery.failure], _)


def sign_in_failure(_: Translate, error: str) -> str:
    """The label of an OAuth error code; the code if there is none."""
    return {
        "access_denied": _("Not allowed"),
        "authorization_pending": _("Not answered yet"),
        "consent_required": _("Consent needed"),
        "expired_token": _("Timed out"),
        "invalid_binding_message": _("Invalid binding message"),
        "invalid_client": _("Client not authenticated"),
        "invalid_grant": _("Invalid code or token"),
        "invalid_request": _("Invalid request"),
        "invalid_request_uri": _("Invalid pushed request"),
        "invalid_scope": _("Invalid scope"),
        "invalid_token": _("Invalid token"),
        "login_required": _("Not signed in"),
        "slow_down": _("Asked too often"),
        "unauthorized_client": _("Not allowed for this client"),
        "unknown_user_id": _("Unknown person"),
        "unsupported_grant_type": _("Grant type not supported"),
        "unsupported_response_type": _("Response type not supported"),
    }.get(error, error)


def flows(_: Translate) -> dict[str, str]:
    """How a sign-in was started."""
    return {
        "code": _("In a browser"),
        "device": _("On a device"),
        "ciba": _("In the messenger"),
        "token": _("Token request"),
        "logout": _("Sign-out"),
    }


def scopes(_: Translate) -> list[tuple[Scope, str]]:
    """What each scope lets a client do. `openid` goes with every client."""
    return [
        ("profile", _("profile: name, user name and language")),
        ("phone", _("phone: a verified phone number, where the messenger has one")),
        ("email", _("email: a verified email address, where there is one")),
        ("offline_access", _("offline_access: stay signed in, by refresh tokens")),
        ("notify", _("notify: ask whether the project may send messages")),
    ]


def grant_types(_: Translate) -> list[tuple[GrantType, str]]:
    """How a client may have people signed in."""
    return [
        ("authorization_code", _("In a browser (authorization code)")),
        ("refresh_token", _("Refresh tokens")),
        (DEVICE_CODE, _("On a device without a browser (device code)")),
        (CIBA, _("By a question in the messenger (CIBA)")),
    ]


def identities(_: Translate) -> list[tuple[Identity, str]]:
    """What a sign-in may have to prove."""
    return [
        ("account", _("An account on the messenger")),
        ("phone", _("A phone number")),
        ("mailbox", _("A mailbox")),
        ("homeserver", _("An account on a homeserver (Matrix)")),
    ]


def auth_methods(_: Translate) -> list[tuple[AuthMethod, str]]:
    """How a client authenticates."""
    return [
        ("client_secret_basic", _("With a secret in the header (client_secret_basic)")),
        ("client_secret_post", _("With a secret in the form or the header (client_secret_post)")),
        ("none", _("Without a secret: an app, or a site without a server")),
        ("private_key_jwt", _("With keys of its own (private_key_jwt)")),
    ]


def difference_text(_: Translate, difference: Difference) -> str:
    """One difference between a registered redirect URI and the one that was sent, and what to do."""
    nothing = _("none")
    both = {
        "registered": difference.registered or nothing,
        "sent": difference.sent or nothing,
    }
    texts = {
        "scheme": _("The scheme differs: {registered} is registered, {sent} was sent.", **both),
        "user_info": _("A user name or password before the host is not allowed: {sent}", **both),
        "host": _("The host differs: {registered} is registered, {sent} was sent.", **both),
        "host_case": _(
            "The host differs in upper and lower case: {registered} and {sent}.", **both
        ),
        "loopback": _("{registered} and {sent} are the same machine, but different hosts.", **both),
        "port": _("The port differs: {registered} is registered, {sent} was sent.", **both),
        "path": _("The path differs: {registered} is registered, {sent} was sent.", **both),
        "path_case": _(
            "The path differs in upper and lower case: {registered} and {sent}.", **both
        ),
        "trailing_slash": _("The slash at the end differs: {registered} and {sent}.", **both),
        "encoding": _("The path is percent-encoded differently: {registered} and {sent}.", **both),
        "query": _(
            "The query after ? differs: {registered} is registered, {sent} was sent.", **both
        ),
        "fragment": _("A part after # is not allowed: {sent}", **both),
        "characters": _(
            "A lone ?, # or :, or a character that can't be seen, makes the difference."
        ),
    }
    return texts[difference.kind]
