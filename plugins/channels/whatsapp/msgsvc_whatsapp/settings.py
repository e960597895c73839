"""Settings of a business phone number: `[channels.<name>]` with `plugin = "whatsapp"`."""

import re

from pydantic import ConfigDict, Field, SecretStr, field_validator

from msgsvc_core.config.sections import Section
from msgsvc_core.kernel import phone
from msgsvc_core.kernel.errors import InvalidValue

#: Where the Graph API is.
BASE_URL = "https://graph.facebook.com"

#: The newest version of the Graph API in autumn 2026; each is served for two years.
API_VERSION = "v25.0"

#: Messages a second that a number may send (Cloud API: "Throughput").
PER_NUMBER_S = 80.0

#: Messages a second to one user. In the long run the platform takes one in six seconds, but up to 45 at
#: once (Cloud API: "Pair rate limits"), so that this suits a conversation; what is beyond waits for code
#: 131056.
PER_USER_S = 1.0

#: Say where our calls go, so a project can't set them for a number of its own.
OPERATOR_SETTINGS = frozenset({"base_url", "api_version", "proxy"})

_SECRET = re.compile(r"[!-~]+")


class WhatsAppSettings(Section):
    """One business phone number."""

    # A token that is refused would otherwise stand in the error's traceback.
    model_config = ConfigDict(hide_input_in_errors=True)

    phone_number_id: str = Field(
        pattern=r"^[0-9]{1,32}$",
        description="The platform's id of the phone number, from the app's dashboard; not the number.",
    )
    phone_number: str = Field(
        description="The business phone number with its country code, e.g. `+15550783881`, for links to the"
        " chat.",
    )
    token: SecretStr = Field(description="A system user's access token.")
    app_secret: SecretStr = Field(
        description="The app's secret, by which the platform signs its calls."
    )
    verify_token: SecretStr | None = Field(
        None,
        description="The verify token that you entered in the app's dashboard with the webhook's address."
        " Without it the service registers the address by itself.",
    )
    template: str | None = Field(
        None,
        pattern=r"^[a-z0-9_]{1,512}$",
        description="Name of an approved template with one variable in its body, for texts to people who have"
        " not written for 24 hours.",
    )
    template_language: str = Field(
        "en", pattern=r"^[a-z]{2,3}(_[A-Z]{2})?$", description="The language of that template."
    )
    list_label: str = Field(
        "☰",
        min_length=1,
        max_length=20,
        description="Label of the button that opens the list of more than three buttons.",
    )
    base_url: str = Field(
        BASE_URL, pattern=r"^https?://[^\s/?#]+[^\s?#]*$", description="Base URL of the Graph API."
    )
    api_version: str = Field(
        API_VERSION, pattern=r"^v[0-9]{1,3}\.[0-9]$", description="Version of the Graph API."
    )
    proxy: SecretStr | None = Field(None, description="HTTP proxy for every call to the platform.")
    timeout_s: float = Field(30.0, gt=0, le=600, description="Timeout of one call, in seconds.")
    per_bot_s: float | None = Field(
        PER_NUMBER_S,
        gt=0,
        description="Messages per second of this number; the platform allows 80.",
    )
    per_chat_s: float | None = Field(PER_USER_S, gt=0, description="Messages per second per user.")

    @field_validator("token", "app_secret", "verify_token")
    @classmethod
    def _fits_a_header(cls, secret: SecretStr | None) -> SecretStr | None:
        # Anything else would fail in every call, with the token in the error's text.
        if secret is not None and not _SECRET.fullmatch(secret.get_secret_value()):
            raise InvalidValue("must be the token alone, without spaces")
        return secret

    @field_validator("phone_number")
    @classmethod
    def _is_a_number(cls, number: str) -> str:
        # What is written as the platform has it is not parsed: that takes time at each start.
        digits = number.removeprefix("+")
        is_plain = re.fullmatch(r"[1-9][0-9]{6,14}", digits)
        return digits if is_plain else phone.normalized(number).removeprefix("+")

    @field_validator("proxy")
    @classmethod
    def _is_http(cls, proxy: SecretStr | None) -> SecretStr | None:
        if proxy is not None and not re.fullmatch(
            r"https?://[^\s/?#]+/?", proxy.get_secret_value()
        ):
            raise InvalidValue("must be http:// or https:// with a host")
        return proxy
