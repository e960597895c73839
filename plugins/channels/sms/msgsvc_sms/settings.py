"""Settings of a channel: `[channels.<name>]` with `plugin = "sms"` or `plugin = "sms_http"`."""

import re
import ssl
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, FilePath, SecretStr, field_validator, model_validator

from msgsvc_core.config.sections import Country, Section
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_sms.gsm import MOST_PARTS
from msgsvc_sms.receipts import ReceiptIds
from msgsvc_sms.templates import PLACEHOLDERS, is_json, placeholders_of

#: How the connection to a centre is encrypted: from its first byte, or not at all.
Tls = Literal["implicit", "none"]

#: The usual port of SMPP; centres with TLS use many.
SMPP_PORT = 2775

#: Words that stop messages, and that allow them again, in the languages of the service and in the usual
#: English of carriers (CTIA Short Code Monitoring Handbook).
STOP_WORDS = (
    "STOP, STOPALL, STOP ALL, UNSUBSCRIBE, CANCEL, END, QUIT, ARRET, ARRÊT,"
    " СТОП, ОТПИСАТЬСЯ, ОТПИСКА"
)
START_WORDS = "START, UNSTOP, SUBSCRIBE, СТАРТ, ПОДПИСАТЬСЯ"

#: Segments of a message: texts of 1,056 characters in any alphabet, and 2,432 in the GSM alphabet.
SEGMENTS = 16

#: Say where our calls go, so a project can't set them for a channel of its own.
SMPP_OPERATOR_SETTINGS = frozenset({"host", "port", "tls", "ca_file"})
HTTP_OPERATOR_SETTINGS = frozenset({"url", "check_url", "proxy", "ca_file"})

Limit = Annotated[int, Field(ge=0, le=100_000_000)]
_PREFIX = re.compile(r"\+?([1-9][0-9]{0,14})")
_WORDS = re.compile(r"[,;\n]+")


class LimitSettings(Section):
    """What is allowed to be sent, and how much. 0 is no limit."""

    allowed_prefixes: str = Field(
        description="Beginnings of the numbers that may be written to, with country code, e.g. `+7, +375`;"
        " `*` for all, which invites toll fraud.",
    )
    number_hour: Limit = Field(10, description="Messages an hour to one number; 0 for no limit.")
    number_day: Limit = Field(30, description="Messages a day to one number; 0 for no limit.")
    prefix_digits: int = Field(
        7, ge=1, le=14, description="Digits of a number, with country code, that are its prefix."
    )
    prefix_hour: Limit = Field(
        200, description="Messages an hour to the numbers of one prefix; 0 for no limit."
    )
    new_numbers_hour: Limit = Field(
        20,
        description="Messages an hour to numbers of one prefix that were never written to before; 0 for no"
        " limit.",
    )
    new_numbers_day: Limit = Field(60, description="The same in a day; 0 for no limit.")
    project_hour: Limit = Field(
        1_000, description="Segments an hour for one project; 0 for no limit."
    )
    project_day: Limit = Field(5_000, description="Segments a day for one project; 0 for no limit.")
    segments_day: Limit = Field(
        10_000, description="Segments a day for the channel, its budget; 0 for no limit."
    )

    @field_validator("allowed_prefixes")
    @classmethod
    def _are_prefixes(cls, text: str) -> str:
        given = _listed(text)
        if not given or not all(each == "*" or _PREFIX.fullmatch(each) for each in given):
            raise InvalidValue("must be beginnings of phone numbers, as +7, +375")
        return text

    def allows(self, number: str) -> bool:
        """Whether the number, `+` and digits, may be written to."""
        digits = number.removeprefix("+")
        allowed = (each.removeprefix("+") for each in _listed(self.allowed_prefixes))
        return any(each == "*" or digits.startswith(each) for each in allowed)


class SenderSettings(Section):
    """Whom messages are from, and what people may write."""

    # A secret that is refused would otherwise stand in the error's traceback.
    model_config = ConfigDict(hide_input_in_errors=True)

    sender: str = Field(
        description="What messages are from: a number with country code, a short number, or a name of up to"
        " 11 characters.",
        pattern=r"^(\+?[0-9]{3,15}|[A-Za-z0-9][A-Za-z0-9 ._&-]{0,10})$",
    )
    number: str | None = Field(
        None,
        description="The number that people write to, if they can answer and it is not `sender`.",
        pattern=r"^\+?[0-9]{3,15}$",
    )
    default_country: Country | None = Field(
        None,
        description="Country of numbers that are given without a country code, by its two letters, e.g. `DE`;"
        " by default the service's `default_country`.",
    )
    trusts_senders: bool = Field(
        False,
        description="Whether the provider vouches for the numbers that texts come from: only then they sign"
        " in.",
    )
    stop_words: str = Field(
        STOP_WORDS, description="Texts that stop all messages to who writes them, with commas."
    )
    start_words: str = Field(
        START_WORDS, description="Texts that allow messages again, with commas."
    )
    plain_punctuation: bool = Field(
        False,
        description="Replaces typographic quotes, dashes, dots and spaces if the GSM alphabet then has the"
        " whole text: with one of them it takes twice as many short messages.",
    )
    max_segments: int = Field(
        SEGMENTS, ge=3, le=MOST_PARTS, description="Short messages that one message may take."
    )
    timeout_s: float = Field(30.0, gt=0, le=600, description="Timeout of one call, in seconds.")
    per_second: float | None = Field(
        None, gt=0, description="Messages per second that the provider allows."
    )

    @property
    def own_number(self) -> str | None:
        """The number for links; None if nobody can write."""
        if self.number is not None:
            return self.number
        return self.sender if re.fullmatch(r"\+?[0-9]+", self.sender) else None

    @property
    def stops(self) -> frozenset[str]:
        return frozenset(map(folded, _listed(self.stop_words)))

    @property
    def starts(self) -> frozenset[str]:
        return frozenset(map(folded, _listed(self.start_words)))

    @model_validator(mode="after")
    def _words_are_clear(self) -> Self:
        if self.stops & self.starts:
            raise InvalidValue("a word can't both stop and start messages")
        return self


class SmsSettings(LimitSettings, SenderSettings):
    """What both ways of sending share. The last base's fields come first in forms."""


class CentreSettings(Section):
    """An account at a message centre."""

    model_config = ConfigDict(hide_input_in_errors=True)

    host: str = Field(
        description="Host of the message centre.",
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$",
        max_length=253,
    )
    port: int = Field(SMPP_PORT, ge=1, le=65535, description="Its port.")
    tls: Tls = Field(
        "implicit",
        description="`implicit` encrypts from the first byte; `none` is for centres on this machine or behind"
        " a VPN: passwords and texts are readable on the way.",
    )
    ca_file: FilePath | None = Field(
        None, description="Certificates (PEM) trusted beside the machine's own."
    )
    # Sections 5.2.1 to 5.2.3: with their zeros 16, 9 and 13 bytes.
    system_id: str = Field(
        description="The account's name.", pattern=r"^[!-~]+$", min_length=1, max_length=15
    )
    password: SecretStr = Field(description="The account's password, of at most 8 characters.")
    system_type: str = Field(
        "",
        description="What the centre asks for as the kind of system; usually nothing.",
        pattern=r"^[ -~]*$",
        max_length=12,
    )
    service_type: str = Field(
        "",
        description="The service that the centre asks for; usually none.",
        pattern=r"^[!-~]*$",
        max_length=5,
    )
    receives: bool = Field(True, description="Whether people can write to the number.")
    window: int = Field(
        10, ge=1, le=1_000, description="Requests that may wait for the centre's answer at a time."
    )
    enquire_s: float = Field(
        30.0, gt=0, le=3_600, description="Seconds between checks that the centre is there."
    )
    reference_bits: Literal["8", "16"] = Field(
        "8", description="Size of the number that the parts of a long text share."
    )
    default_alphabet: Literal["gsm", "latin1"] = Field(
        "gsm", description="What the centre takes for its default alphabet (`data_coding` 0)."
    )
    receipt_ids: ReceiptIds = Field(
        "same",
        description="How receipts write a message's id: the `same` as the answer to it, in `decimal` where"
        " that has hexadecimal, or the other way round.",
    )
    gone_errors: str = Field(
        "",
        description="Codes (`err:`) of receipts by which the centre says that the number is out of use, with"
        " commas: who has it is unsubscribed. They differ from centre to centre.",
        pattern=r"^[\w ,]*$",
    )
    blocked_statuses: str = Field(
        "",
        description="Statuses by which the centre says that the person wants no messages, e.g. `0x0401`.",
        pattern=r"^(\s*0[xX][0-9a-fA-F]{1,8}\s*,?)*$",
    )

    @field_validator("password")
    @classmethod
    def _fits_a_bind(cls, password: SecretStr) -> SecretStr:
        if not re.fullmatch(r"[ -~]{0,8}", password.get_secret_value()):
            raise InvalidValue("must be at most 8 characters without accents")
        return password

    @property
    def gone(self) -> frozenset[str]:
        return frozenset(_listed(self.gone_errors))

    @property
    def blocked(self) -> frozenset[int]:
        return frozenset(int(each, 16) for each in _listed(self.blocked_statuses))

    @property
    def tls_context(self) -> ssl.SSLContext | None:
        if self.tls == "none":
            return None
        context = ssl.create_default_context()
        if self.ca_file is not None:
            context.load_verify_locations(self.ca_file)
        return context


class SmppSettings(SmsSettings, CentreSettings):
    """`[channels.<name>]` with `plugin = "sms"`."""


class ProviderSettings(Section):
    """A provider's HTTP API, described by templates."""

    model_config = ConfigDict(hide_input_in_errors=True)

    url: str = Field(
        description="The address that takes messages; may have placeholders.",
        pattern=r"^https?://[^\s/?#]+[^\s#]*$",
    )
    check_url: str | None = Field(
        None,
        description="An address that answers a GET with the same headers with success, e.g. that of the"
        " balance: asked to see whether the account works.",
        pattern=r"^https?://[^\s/?#]+[^\s#]*$",
    )
    method: Literal["POST", "GET", "PUT"] = Field("POST", description="The HTTP method.")
    headers: SecretStr | None = Field(
        None,
        description="Headers of each call, one `Name: value` per line, such as that with your key.",
    )
    username: str | None = Field(None, description="User name for HTTP Basic authentication.")
    password: SecretStr | None = Field(None, description="Password for HTTP Basic authentication.")
    body: str = Field(
        "",
        description="The body with placeholders: JSON, or lines `name=value` of a form. `{to}`, `{digits}`,"
        " `{text}`, `{sender}`, `{key}`, `{secret}`.",
    )
    body_format: Literal["json", "form"] = Field("json", description="What the body is.")
    secret: SecretStr | None = Field(
        None, description="The value of the placeholder `{secret}`, e.g. a key in the body."
    )
    message_id: str = Field(
        description="Where the answer has the message's id: names and positions with dots, e.g."
        " `messages.0.id`; `text` for all of a plain answer.",
        pattern=r"^[\w.-]+$",
    )
    status: str | None = Field(
        None,
        description="Where the answer has its code, if not its HTTP status.",
        pattern=r"^[\w.-]+$",
    )
    answers: str = Field(
        "",
        description="What codes mean: `code = meaning`, with commas. The code is at `status`, or an HTTP"
        " status; meanings are `ok`, `rate_limited`, `platform_unavailable`, `bot_banned`,"
        " `chat_not_found`, `user_blocked_bot`, `invalid_message` and `unknown`.",
    )
    proxy: SecretStr | None = Field(None, description="HTTP proxy for every call.")
    ca_file: FilePath | None = Field(
        None, description="Certificates (PEM) trusted beside the machine's own."
    )
    # ---- in
    inbound_secret: SecretStr | None = Field(
        None,
        description="The last part of the webhook's address, by which the provider proves its calls:"
        " `/hooks/<channel>/<secret>`. At least 16 letters and digits.",
    )
    signature_header: str | None = Field(
        None,
        description="The header with the HMAC-SHA256 of the body, if the provider signs its calls.",
        pattern=r"^[A-Za-z0-9-]+$",
    )
    signature_secret: SecretStr | None = Field(None, description="The key of that signature.")
    inbound_from: str = Field(
        "from", description="Where a call has the number of who wrote.", pattern=r"^[\w.-]+$"
    )
    inbound_text: str = Field(
        "text", description="Where a call has the text.", pattern=r"^[\w.-]+$"
    )
    inbound_id: str = Field(
        "id", description="Where a call has the id of what was written.", pattern=r"^[\w.-]+$"
    )
    receipt_id: str = Field(
        "message_id",
        description="Where a call has the id of the message that it reports on.",
        pattern=r"^[\w.-]+$",
    )
    receipt_status: str = Field(
        "status", description="Where a call has what became of that message.", pattern=r"^[\w.-]+$"
    )
    delivered_statuses: str = Field(
        "delivered, DELIVRD", description="Words for a message that has arrived, with commas."
    )
    gone_statuses: str = Field(
        "",
        description="Words for a number that is out of use, with commas: who has it is unsubscribed.",
    )
    failed_statuses: str = Field(
        "failed, undelivered, rejected, expired, UNDELIV, REJECTD, EXPIRED",
        description="Words for a message that will not arrive, with commas.",
    )

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: SecretStr | None) -> SecretStr | None:
        for line in _lines(headers):
            if not re.fullmatch(r"[A-Za-z0-9-]+\s*:\s*[!-~](?:[ -~]*)", line):
                raise InvalidValue("must be lines of a name, a colon, and a value")
        return headers

    @field_validator("body", "url")
    @classmethod
    def _has_known_placeholders(cls, template: str) -> str:
        unknown = placeholders_of(template) - PLACEHOLDERS
        if unknown:
            raise InvalidValue("has a placeholder that does not exist")
        return template

    @field_validator("answers")
    @classmethod
    def _are_meanings(cls, text: str) -> str:
        for each in _listed(text):
            code, _, meaning = (part.strip() for part in each.partition("="))
            if not code or meaning not in MEANINGS:
                raise InvalidValue("must be codes with their meanings, as 429 = rate_limited")
        return text

    @field_validator("inbound_secret")
    @classmethod
    def _is_no_guess(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and not re.fullmatch(
            r"[A-Za-z0-9_-]{16,128}", secret.get_secret_value()
        ):
            raise InvalidValue("must be 16 to 128 letters and digits")
        return secret

    @field_validator("proxy")
    @classmethod
    def _is_http(cls, proxy: SecretStr | None) -> SecretStr | None:
        if proxy is not None and not re.fullmatch(
            r"https?://[^\s/?#]+/?", proxy.get_secret_value()
        ):
            raise InvalidValue("must be http:// or https:// with a host")
        return proxy

    @model_validator(mode="after")
    def _belong_together(self) -> Self:
        if (self.signature_header is None) != (self.signature_secret is None):
            raise InvalidValue("signature_header and signature_secret belong together")
        if (self.username is None) != (self.password is None):
            raise InvalidValue("username and password belong together")
        if self.body and self.body_format == "json" and not is_json(self.body):
            raise InvalidValue("body is no JSON")
        if self.method == "GET" and self.body:
            raise InvalidValue("a GET has no body; write the placeholders into url")
        return self

    @property
    def receives(self) -> bool:
        """Whether the provider's calls can prove themselves."""
        return self.inbound_secret is not None or self.signature_secret is not None

    @property
    def header_lines(self) -> dict[str, str]:
        pairs = (line.partition(":") for line in _lines(self.headers))
        return {name.strip(): value.strip() for name, _, value in pairs}

    @property
    def meanings(self) -> dict[str, str]:
        pairs = (each.partition("=") for each in _listed(self.answers))
        return {code.strip(): meaning.strip() for code, _, meaning in pairs}

    @property
    def delivered(self) -> frozenset[str]:
        return frozenset(map(folded, _listed(self.delivered_statuses)))

    @property
    def gone(self) -> frozenset[str]:
        return frozenset(map(folded, _listed(self.gone_statuses)))

    @property
    def failed(self) -> frozenset[str]:
        return frozenset(map(folded, _listed(self.failed_statuses)))


class HttpSettings(SmsSettings, ProviderSettings):
    """`[channels.<name>]` with `plugin = "sms_http"`."""


#: Meanings of a provider's codes: success, and the reasons of a failed delivery.
MEANINGS = frozenset(
    {
        "ok",
        "rate_limited",
        "platform_unavailable",
        "bot_banned",
        "chat_not_found",
        "user_blocked_bot",
        "invalid_message",
        "unknown",
    }
)


#: What people and keyboards write around a word.
_MARKS = " .!,\"'«»“”„‟‘’‚‹›`´\ufeff\u200b"


def folded(text: str) -> str:
    """A word as it is compared: in any case, with spaces and marks around it."""
    return " ".join(text.casefold().split()).strip(_MARKS)


def _listed(text: str) -> list[str]:
    return [each.strip() for each in _WORDS.split(text) if each.strip()]


def _lines(text: SecretStr | None) -> list[str]:
    lines = [] if text is None else text.get_secret_value().splitlines()
    return [line.strip() for line in lines if line.strip()]
