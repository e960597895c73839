"""Projects and API keys, inside and on the wire."""

from dataclasses import dataclass
from typing import Literal

from msgsvc_core.api.endpoint import Answer


@dataclass(frozen=True, slots=True)
class Project:
    """A tenant. Everything else belongs to one."""

    project_id: str
    name: str
    status: Literal["active", "disabled"]
    created_at_ms: int


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is stored: its visible prefix and its digest. `*` in `scopes` is every area."""

    key_id: str
    project_id: str
    name: str
    prefix: str
    scopes: tuple[str, ...]

    def opens(self, area: str) -> bool:
        return "*" in self.scopes or area in self.scopes


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A key as an operator sees it. `revoked_at_ms` is None while it is in use."""

    key: ApiKey
    created_at_ms: int
    revoked_at_ms: int | None


class ChannelAnswer(Answer):
    """A channel that the project can use, and the link to its bot, once its messenger has told it.

    `own`: whether it is the project's own, or shared with others.
    """

    name: str
    own: bool
    link: str | None


class LimitsAnswer(Answer):
    """The limits in force."""

    requests_per_minute: int
    text_length: int
    button_rows: int
    buttons_per_row: int
    tags: int


class ProjectAnswer(Answer):
    """The project that an API key belongs to."""

    project_id: str
    name: str
    status: Literal["active", "disabled"]
    created_at: str
    limits: LimitsAnswer
    channels: list[ChannelAnswer]
