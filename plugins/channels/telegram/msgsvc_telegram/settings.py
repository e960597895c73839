"""Settings of a bot: `[channels.<name>]` with `plugin = "telegram"`."""

import re
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, SecretStr, field_validator, model_validator

from msgsvc_core.config.sections import Section
from msgsvc_core.kernel.errors import InvalidValue

#: As BotFather gives it out: the bot's id, and a secret. It becomes part of URLs, so nothing that would
#: lead elsewhere may be in it.
TOKEN = re.compile(r"\d{1,20}:[A-Za-z0-9_-]{20,100}")


class TelegramSettings(Section):
    """One bot on Telegram."""

    # What is refused may be nearly a token, or a proxy with its password.
    model_config = ConfigDict(hide_input_in_errors=True)

    token: SecretStr = Field(description="The bot's token from BotFather.")
    receiving: Literal["poll", "webhook"] = Field(
        "poll",
        description="How updates are received: by polling, or by webhook at `base_url`, which "
        "Telegram must reach over HTTPS.",
    )
    username: str | None = Field(
        None,
        pattern=r"^[A-Za-z][A-Za-z0-9_]{3,31}$",
        description="Username of the bot, without @, for links; by default requested from Telegram.",
    )
    base_url: str = Field(
        "https://api.telegram.org",
        description="Base URL of the Bot API: Telegram's, or your own server's.",
    )
    proxy: SecretStr | None = Field(
        None, description="HTTP proxy for all calls, e.g. `http://user:password@host:3128`."
    )
    timeout_s: float = Field(
        30.0, gt=0, description="Timeout of one call, in seconds; long polls have a longer one."
    )
    command_menu: bool = Field(
        True,
        description="Whether the bot's command menu is set; `false` keeps the one set with @BotFather.",
    )
    makes_bots: bool = Field(
        False,
        description="Whether projects get bots of their own by this one, in one tap and without a token; for "
        "a bot with bot management enabled in @BotFather.",
    )
    login_client_id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]{1,100}$",
        description="Client ID of the bot's Web Login from @BotFather: people can then sign in on Telegram's "
        "own page too.",
    )
    login_client_secret: SecretStr | None = Field(
        None, description="Client Secret of the bot's Web Login, needed with `login_client_id`."
    )
    login_phone: bool = Field(
        True, description="Whether Telegram's page asks people to share their phone number."
    )
    login_url: str = Field(
        "https://oauth.telegram.org",
        description="Issuer of Telegram's OpenID Connect, the base URL of its page and its calls.",
    )
    per_bot_s: float = Field(
        30.0,
        gt=0,
        description="Messages per second (Telegram: 30, more only for paid broadcasts: "
        "`paid_broadcast_stars`).",
    )
    paid_broadcast_stars: int | None = Field(
        None,
        ge=1,
        le=10_000_000,
        description="Telegram Stars of the bot's balance that it may spend a day (UTC) to send faster than "
        "`per_bot_s`, 0.1 Stars for each message beyond it; without them it sends no faster.",
    )
    paid_per_bot_s: float = Field(
        1000.0,
        gt=0,
        le=1000,
        description="Messages per second while Stars are left (Telegram: up to 1000).",
    )
    per_chat_s: float = Field(1.0, gt=0, description="Messages per second to one chat.")
    per_group_min: float = Field(20.0, gt=0, description="Messages per minute to one group.")

    @field_validator("token")
    @classmethod
    def _like_a_token(cls, token: SecretStr) -> SecretStr:
        if not TOKEN.fullmatch(token.get_secret_value()):
            raise InvalidValue("is no token of BotFather, which look like 123456:ABC-DEF...")
        return token

    @model_validator(mode="after")
    def _login_has_both(self) -> Self:
        if (self.login_client_id is None) != (self.login_client_secret is None):
            raise InvalidValue("give login_client_id and login_client_secret, or neither")
        return self

    @field_validator("base_url", "login_url")
    @classmethod
    def _leads_to_a_host(cls, url: str) -> str:
        if not _has_host(url) or urlsplit(url).query or urlsplit(url).fragment:
            raise InvalidValue(
                "must be http:// or https:// with a host, and maybe a port and a path"
            )
        return url

    @field_validator("proxy")
    @classmethod
    def _leads_to_a_proxy(cls, proxy: SecretStr | None) -> SecretStr | None:
        if proxy is not None and not _has_host(proxy.get_secret_value()):
            raise InvalidValue("must be http:// or https:// with a host, and maybe a port")
        return proxy


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of a port that is none, or half of an IPv6 address
        return False
