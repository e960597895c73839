"""Settings of a bot: `[channels.<name>]` with `plugin = "matrix"`."""

import re
from typing import Self
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, FilePath, SecretStr, field_validator, model_validator

from msgsvc_core.config.sections import Section
from msgsvc_core.kernel.errors import InvalidValue

#: Say where our calls go, so a project can't set them for a bot of its own.
OPERATOR_SETTINGS = frozenset({"homeserver_url", "proxy", "ca_file"})

#: A server name: a DNS name or an address, with an optional port (appendices, "Server Name").
_SERVER_NAME = re.compile(r"(?:[A-Za-z0-9.-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?")


class MatrixSettings(Section):
    """One bot on a Matrix homeserver."""

    # A token that is refused would otherwise stand in the error's traceback.
    model_config = ConfigDict(hide_input_in_errors=True)

    homeserver_url: str = Field(
        description="Base URL of the bot's homeserver for clients, e.g. `https://matrix.example.org`."
    )
    token: SecretStr = Field(
        description="Access token of the bot's account; with `user`, the password of that account."
    )
    user: str | None = Field(
        None,
        pattern=r"^@?[^\s:]+(:\S+)?$",
        description="User who signs in with a password, e.g. `shop_bot`. Each process signs in by itself.",
    )
    allowed_homeservers: tuple[str, ...] = Field(
        (),
        description="Names of the servers whose users may write to the bot, subscribe and sign in, e.g."
        " `example.org`; empty for all. Invitations by others are declined.",
    )
    proxy: SecretStr | None = Field(
        None, description="HTTP proxy for every call to the homeserver."
    )
    ca_file: FilePath | None = Field(
        None, description="Certificates (PEM) to trust in addition to the system's."
    )
    timeout_s: float = Field(30.0, gt=0, le=600, description="Timeout of one call, in seconds.")
    per_bot_s: float = Field(
        5.0,
        gt=0,
        description="Messages per second of the bot. Synapse takes 0.2 unless its administrator exempts the"
        " bot.",
    )
    per_chat_s: float = Field(2.0, gt=0, description="Messages per second in one chat.")

    @field_validator("homeserver_url")
    @classmethod
    def _leads_to_a_host(cls, url: str) -> str:
        if not _has_host(url) or urlsplit(url).query or urlsplit(url).fragment:
            raise InvalidValue(
                "must be http:// or https:// with a host, and maybe a port and a path"
            )
        return url.rstrip("/")

    @field_validator("allowed_homeservers")
    @classmethod
    def _are_server_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if not all(_SERVER_NAME.fullmatch(name) for name in names):
            raise InvalidValue("must be names of servers, as they end user ids: example.org")
        return tuple(name.lower() for name in names)

    @field_validator("proxy")
    @classmethod
    def _leads_to_a_proxy(cls, proxy: SecretStr | None) -> SecretStr | None:
        if proxy is not None and not _has_host(proxy.get_secret_value()):
            raise InvalidValue("must be http:// or https:// with a host, and maybe a port")
        return proxy

    @model_validator(mode="after")
    def _token_is_one_word(self) -> Self:
        if self.user is None and not re.fullmatch(r"[!-~]{1,2000}", self.token.get_secret_value()):
            raise InvalidValue("must be the token alone, without spaces")
        return self

    def allows(self, user_id: str) -> bool:
        """Whether a user may write to the bot, by the server in their id."""
        server = user_id.partition(":")[2].lower()
        return not self.allowed_homeservers or server in self.allowed_homeservers


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of a port that is none, or half of an IPv6 address
        return False
