"""Settings of a bot: `[channels.<name>]` with `plugin = "max"`."""

import re
from typing import Literal

from pydantic import ConfigDict, Field, FilePath, SecretStr, field_validator

from msgsvc_core.config.sections import Section
from msgsvc_core.kernel.errors import InvalidValue

#: Where the Bot API is (the platform's schema of 2026-07-01, `servers`; `platform-api.max.ru` was its
#: address until then).
BASE_URL = "https://platform-api2.max.ru"

#: Requests a second that the platform takes of one bot (dev.max.ru, overview).
PER_BOT_S = 30.0

#: Messages a second that it takes for one chat (dev.max.ru, POST /messages).
PER_CHAT_S = 2.0

#: Say where our calls go, so a project can't set them for a bot of its own.
OPERATOR_SETTINGS = frozenset({"base_url", "proxy", "ca_file"})


class MaxSettings(Section):
    """One bot on MAX."""

    # A token that is refused would otherwise stand in the error's traceback.
    model_config = ConfigDict(hide_input_in_errors=True)

    token: SecretStr = Field(description="The bot's token, from the partner platform.")
    receiving: Literal["poll", "webhook"] = Field(
        "poll",
        description="How updates are received: `poll` polls the platform; `webhook` has it call"
        " `{base_url}/hooks/{channel}`, which must be https on port 443.",
    )
    base_url: str = Field(
        BASE_URL, pattern=r"^https?://[^\s/?#]+[^\s?#]*$", description="Base URL of the Bot API."
    )
    proxy: SecretStr | None = Field(None, description="HTTP proxy for every call to the platform.")
    ca_file: FilePath | None = Field(
        None,
        description="Certificates (PEM) to trust in addition to the system's, such as the Russian root"
        " that the platform's own certificate is from.",
    )
    timeout_s: float = Field(30.0, gt=0, le=600, description="Timeout of one call, in seconds.")
    command_menu: bool = Field(
        True,
        description="Whether the bot's command menu is set; `false` leaves it unchanged.",
    )
    per_bot_s: float | None = Field(
        PER_BOT_S, gt=0, description="Messages per second of this bot; the platform allows 30."
    )
    per_chat_s: float | None = Field(
        PER_CHAT_S, gt=0, description="Messages per second per chat; the platform allows 2."
    )

    @field_validator("token")
    @classmethod
    def _fits_a_header(cls, token: SecretStr) -> SecretStr:
        # Anything else would fail in every call, with the token in the error's text.
        if not re.fullmatch(r"[!-~]+", token.get_secret_value()):
            raise InvalidValue("must be the token alone, without spaces")
        return token

    @field_validator("proxy")
    @classmethod
    def _is_http(cls, proxy: SecretStr | None) -> SecretStr | None:
        if proxy is not None and not re.fullmatch(
            r"https?://[^\s/?#]+/?", proxy.get_secret_value()
        ):
            raise InvalidValue("must be http:// or https:// with a host")
        return proxy
