"""How each sender's requests are read, checked and answered.

Sources: ZITADEL's guide "Notification Providers", and of its code
`internal/notification/types/user_phone.go` and `user_email.go` (bodies), `internal/i18n/i18n.go` (texts that
are missing) and `pkg/actions/signing.go` (signatures). Logto's `connector-http-sms` and
`connector-http-email`, which post the same, and `connector-kit/src/types/passwordless.ts` (types).
Novu's `packages/providers/src/lib/sms/generic-sms`. Supabase's guide "Send SMS Hook", and of its code
`internal/hooks/v0hooks` (bodies, answers, signatures), `internal/api/phone.go` and `mfa.go`.
"""

import hashlib
import hmac
import html
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from msgsvc_core.api.types import HttpUrl
from msgsvc_core.api.validation import refusal
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import ApiError, BadRequest, ValidationFailed
from msgsvc_core.kernel.json import read_json
from msgsvc_core.security.signing import verify_standard
from msgsvc_gateway.errors import GatewaySignatureInvalid
from msgsvc_gateway.models import GatewayMessage, Purpose, Sender, Submitted

#: The header of ZITADEL's signature: `t=<Unix seconds>,v1=<hex of HMAC-SHA256>`, over the time, a dot and the
#: body.
SIGNATURE = "ZITADEL-Signature"

#: Seconds by which a signature's time may differ from ours, as in ZITADEL's own libraries and in those of
#: Standard Webhooks.
TOLERANCE_S = 300

#: Before Supabase's secrets.
SUPABASE_VERSION = "v1,"

#: Names and positions of a path into a body.
MAX_DEPTH = 20

#: What ZITADEL's messages with a code are for, by the event that caused them.
ZITADEL_PURPOSES: Mapping[str, Purpose] = {
    "session.otp.email.challenged": "mfa_verification",
    "session.otp.sms.challenged": "mfa_verification",
    "user.human.email.code.added": "bind_new_identifier",
    "user.human.initialization.code.added": "register",
    "user.human.invite.code.added": "organization_invitation",
    "user.human.mfa.otp.email.code.added": "mfa_verification",
    "user.human.mfa.otp.sms.code.added": "mfa_verification",
    "user.human.password.code.added": "forgot_password",
    "user.human.phone.code.added": "bind_new_identifier",
}

#: What Logto's are for, by its types of templates.
LOGTO_PURPOSES: Mapping[str, Purpose] = {
    "BindMfa": "bind_mfa",
    "BindNewIdentifier": "bind_new_identifier",
    "ForgotPassword": "forgot_password",
    "MfaVerification": "mfa_verification",
    "OrganizationInvitation": "organization_invitation",
    "Register": "register",
    "SignIn": "sign_in",
    "UserPermissionValidation": "user_permission_validation",
}

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)

#: ZITADEL puts the name of a text where it has none: the greeting of its text messages with a code is
#: `VerifySMSOTP.Greeting`.
_NAME_OF_TEXT = re.compile(r"[A-Za-z]+\.(Greeting|Text|ButtonText)")

#: Characters of a code that a sender may post.
MAX_CODE = 64

#: Characters of the words on a button.
MAX_LABEL = 64

#: Characters of a text that a sender may post; a channel may take fewer.
MAX_TEXT = 4096

Text = Annotated[str, Field(max_length=MAX_TEXT)]
Recipient = Annotated[str, Field(min_length=3, max_length=254)]


class _Posted(BaseModel):
    """What a sender posts. It may add fields at any time: those that are not known are ignored."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, alias_generator=to_camel, populate_by_name=True
    )


class _Context(_Posted):
    event_type: str = ""
    recipient_phone_number: Recipient | None = None
    recipient_email_address: Recipient | None = None


class _Template(_Posted):
    greeting: Text = ""
    text: Text = ""
    url: HttpUrl | Literal[""] = ""
    button_text: Annotated[str, Field(max_length=200)] = ""


class _Args(_Posted):
    """`code`, and for one-time passwords `oTP` as well: names of ZITADEL's with a small first letter."""

    code: Annotated[str, Field(max_length=MAX_CODE)] | None = None
    one_time_password: Annotated[str | None, Field(max_length=MAX_CODE, alias="oTP")] = None


class _Zitadel(_Posted):
    context_info: _Context
    template_data: _Template
    args: _Args = _Args()


class _LogtoPayload(_Posted):
    code: Annotated[str, Field(max_length=MAX_CODE)] = ""
    link: HttpUrl | Literal[""] = ""
    locale: Annotated[str, Field(max_length=64)] | None = None


class _Logto(_Posted):
    to: Recipient
    type: Annotated[str, Field(max_length=64)]
    payload: _LogtoPayload


class _Novu(_Posted):
    to: Recipient
    content: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    id: Annotated[str, Field(max_length=200)] | None = None


class _Generic(_Posted):
    """What a gateway asks of others. Templates of JSON write null for what is missing."""

    to: Recipient
    code: Annotated[str, Field(max_length=MAX_CODE)] | None = None
    text: Text | None = None
    link: HttpUrl | Literal[""] | None = None
    purpose: Annotated[str, Field(max_length=64)] | None = None
    lang: Annotated[str, Field(max_length=64)] | None = None
    id: Annotated[str, Field(max_length=200)] | None = None


class _SupabaseUser(_Posted):
    """Supabase stores numbers without `+`. `new_phone` is one that the person has not confirmed yet."""

    model_config = ConfigDict(alias_generator=None)

    phone: Annotated[str, Field(max_length=254)] = ""
    new_phone: Annotated[str, Field(max_length=254)] = ""


class _SupabaseSms(_Posted):
    """Releases before 2025 name no number here: the code was for that of the user."""

    model_config = ConfigDict(alias_generator=None)

    otp: Annotated[str, Field(min_length=1, max_length=MAX_CODE)]
    phone: Annotated[str, Field(max_length=254)] = ""
    sms_type: Annotated[str, Field(max_length=64)] = ""


class _Supabase(_Posted):
    user: _SupabaseUser
    sms: _SupabaseSms


def read(sender: Sender, body: bytes, paths: Mapping[str, str] | None = None) -> Submitted:
    """What a request asks for; `paths` are those of a generic sender. Raises `ValidationFailed`,
    `BadRequest`."""
    try:
        if sender == "zitadel":
            return _read_zitadel(_Zitadel.model_validate_json(body), body)
        if sender == "logto":
            return _read_logto(_Logto.model_validate_json(body), body)
        if sender == "supabase":
            return _read_supabase(_Supabase.model_validate_json(body), body)
        if sender == "generic":
            if paths:
                return _read_generic(_Generic.model_validate(_at_paths(body, paths)), body)
            return _read_generic(_Generic.model_validate_json(body), body)
        return _read_novu(_Novu.model_validate_json(body))
    except ValidationError as error:
        raise refusal(error) from None


def answer(sender: Sender, message: GatewayMessage) -> dict[str, Any]:
    """What a sender is told about its message. ZITADEL and Logto look at the status alone; Novu's id and date
    are where its settings have them by default, now and in earlier releases."""
    told = {"id": message.message_id, "date": to_rfc3339(message.created_at_ms)}
    return {**told, "data": told} if sender == "novu" else told


def refusal_in_answer(error: ApiError) -> dict[str, Any]:
    """How Supabase is refused: it shows the message of an answer with status 200, and of any other only the
    status, as an error of its own server."""
    return {"error": {"http_code": error.status, "message": error.message}}


def check_signature(
    sender: Sender, headers: Mapping[str, str], body: bytes, key: str, *, now_s: int
) -> None:
    """Checks the signature of a sender that signs. Raises `GatewaySignatureInvalid`."""
    if sender == "supabase":
        _check_standard(headers, body, key, now_s)
    else:
        _check_zitadel(headers.get(SIGNATURE, ""), body, key, now_s)


def _check_standard(headers: Mapping[str, str], body: bytes, key: str, now_s: int) -> None:
    # Supabase separates several by a comma and a space, the standard by a space.
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    given = {name: headers.get(name, "").replace(", ", " ") for name in names}
    time = given["webhook-timestamp"]
    if len(time) > 12 or not verify_standard(given, body, key):
        raise GatewaySignatureInvalid
    if abs(now_s - int(time)) > TOLERANCE_S:
        raise GatewaySignatureInvalid


def _check_zitadel(header: str, body: bytes, key: str, now_s: int) -> None:
    pairs = [part.strip().partition("=")[::2] for part in header.split(",")]
    [time, *_] = [value for name, value in pairs if name == "t"] or [""]
    if not time.isascii() or not time.isdecimal() or len(time) > 12:
        raise GatewaySignatureInvalid
    signed = hmac.new(key.encode(), time.encode() + b"." + body, hashlib.sha256).hexdigest()
    given = [value.encode() for name, value in pairs if name == "v1"]
    # Compared with each before `any`: the duration must not reveal which one matched.
    matches = [hmac.compare_digest(signed.encode(), each) for each in given]
    if not any(matches) or abs(now_s - int(time)) > TOLERANCE_S:
        raise GatewaySignatureInvalid


def _read_zitadel(posted: _Zitadel, body: bytes) -> Submitted:
    context, template = posted.context_info, posted.template_data
    to = context.recipient_phone_number or context.recipient_email_address
    if to is None:
        raise ValidationFailed(
            "give recipientPhoneNumber or recipientEmailAddress", field="contextInfo"
        )
    greeting, said, label = _said(template.greeting), _said(template.text), template.button_text
    if context.recipient_phone_number is None:
        # In emails, names of people are escaped as in HTML.
        greeting, label = html.unescape(greeting), html.unescape(label)
    text = "\n\n".join(filter(None, (greeting, said)))
    code = (posted.args.code or posted.args.one_time_password or "").strip()
    # A code without words has ours, or the project's.
    if not text.strip() and not code:
        raise ValidationFailed("must hold more than spaces", field="templateData.text")
    return Submitted(
        to=to,
        once=_digest(body),
        text=text,
        link=template.url,
        label=_said(label)[:MAX_LABEL],
        code=code,
        purpose=ZITADEL_PURPOSES.get(context.event_type, "generic"),
    )


def _read_logto(posted: _Logto, body: bytes) -> Submitted:
    payload = posted.payload
    if not payload.code.strip() and not payload.link:
        raise ValidationFailed("must hold a code or a link", field="payload")
    return Submitted(
        to=posted.to,
        once=_digest(body),
        link=payload.link,
        code=payload.code.strip(),
        purpose=LOGTO_PURPOSES.get(posted.type, "generic"),
        lang=payload.locale,
    )


def _read_novu(posted: _Novu) -> Submitted:
    if not posted.content.strip():
        raise ValidationFailed("must hold more than spaces", field="content")
    # Two messages with one text are two messages; Novu gives each an id.
    once = None if posted.id is None else _digest(posted.id.encode())
    return Submitted(to=posted.to, once=once, text=posted.content)


def _read_supabase(posted: _Supabase, body: bytes) -> Submitted:
    user, sms = posted.user, posted.sms
    to = sms.phone or user.phone
    if len(to) < 3:
        raise ValidationFailed("give a phone number", field="sms.phone")
    purpose: Purpose = "sign_in"
    if sms.sms_type == "mfa":
        purpose = "mfa_verification"
    elif user.new_phone and user.new_phone == to:
        purpose = "bind_new_identifier"
    return Submitted(to=to, once=_digest(body), code=sms.otp.strip(), purpose=purpose)


def _at_paths(body: bytes, paths: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a body of any form, with those that have a path from there."""
    try:
        posted = read_json(body)
    except (ValueError, RecursionError):
        raise BadRequest("the body must be JSON") from None
    found = dict(posted) if isinstance(posted, dict) else {}
    for name, path in paths.items():
        found[name] = value = _at(posted, path)
        if name == "to" and value is None:
            raise ValidationFailed("there is nothing at {path} in the body", path=path, field=name)
    return found


def _at(value: Any, path: str) -> Any:
    """What is there; None where nothing is. Codes and numbers may be written as JSON numbers."""
    for step in path.split(".")[:MAX_DEPTH]:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isascii() and step.isdecimal():
            value = next(iter(value[int(step) : int(step) + 1]), None)
        else:
            return None
    return str(value) if type(value) is int else value


def _read_generic(posted: _Generic, body: bytes) -> Submitted:
    code, text = (posted.code or "").strip(), posted.text or ""
    if not text.strip():
        text = ""
    if not code and not text:
        raise ValidationFailed("give a code or a text", field="text")
    # Without an id, a code tells that a request is repeated: the same text may be meant twice.
    once = _digest(posted.id.encode()) if posted.id else _digest(body) if code else None
    return Submitted(
        to=posted.to,
        once=once,
        text=text,
        link=posted.link or "",
        code=code,
        purpose=next((each for each in PURPOSES if each == posted.purpose), "generic"),
        lang=posted.lang,
    )


def _said(text: str) -> str:
    """A text of ZITADEL's; empty if it is but the name of one."""
    return "" if _NAME_OF_TEXT.fullmatch(text.strip()) else text


def _digest(body: bytes) -> str:
    """A sender that repeats a request posts the same bytes again: a new message has a new code in it."""
    if not body:
        raise BadRequest("the body is empty")
    return hashlib.sha256(body).hexdigest()
