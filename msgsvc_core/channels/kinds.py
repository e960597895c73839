"""Kinds of messengers, which create channels from settings."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, get_args

from pydantic import SecretBytes, SecretStr, ValidationError
from pydantic_core import to_jsonable_python

from msgsvc_core.channels.context import ChannelContext
from msgsvc_core.channels.contract import Channel, ChannelIdentity
from msgsvc_core.channels.look import MessengerLook
from msgsvc_core.config.sections import OwnChannelSettings, Section
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.hooks import unique_by_name
from msgsvc_core.kernel.validation_messages import to_findings
from msgsvc_core.security import SecretBox

#: Commands and numbers of an SVG path, which hold no markup.
_PATH = re.compile(r"[MLHVCSQTAZ0-9 .,-]*", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """Declares a kind of messenger (hook `register_channel_kinds`).

    `settings` is the model of `[channels.<name>]` without `plugin`; `create` makes the channel.
    `operator_settings` are settings that a project can't set for its own channels, because they determine
    where our calls go: base URLs and proxies. Settings with paths are always among them: no project may name
    files of the server.
    """

    name: str
    settings: type[Section]
    create: Callable[[ChannelContext, ChannelIdentity, Any], Channel]
    operator_settings: frozenset[str] = frozenset()
    #: The messenger's name ("Telegram") on pages and in texts. If empty, the name of the channel is used,
    #: which suits a kind that stands for any messenger.
    title: str = ""
    #: A drawing for buttons that open the messenger: the data of one SVG path in a square of 24 by 24, filled
    #: by the even-odd rule in the colour of the text. If empty, a speech bubble is shown. Use a drawing of
    #: your own, or one whose licence and trademark rules allow it.
    mark: str = ""
    #: The colours of its chats, and where its buttons are, for previews. If None, previews have the colours
    #: of the page.
    look: MessengerLook | None = None
    #: For development only: `msgsvc doctor` warns if there is no other.
    for_development: bool = False
    #: Description in the list of `msgsvc init`, instead of the title.
    about: str = ""

    def __post_init__(self) -> None:
        if not _PATH.fullmatch(self.mark):
            raise ValueError("ChannelKind.mark is the data of an SVG path: letters and numbers")

    @property
    def reserved(self) -> frozenset[str]:
        """The settings that only the operator can set."""
        fields = self.settings.model_fields.items()
        paths = {name for name, field in fields if _is_path(field.annotation)}
        return self.operator_settings | paths


class WrongSettings(InvalidValue):
    """The settings of a channel are invalid; the field is the name of the setting."""


class WrongKind(WrongSettings):
    """The kind of messenger does not exist or is not available to projects; the field is `plugin`."""


@dataclass(frozen=True, slots=True)
class ShownSettings:
    """Settings without secrets: `values`, and the names of the `secrets` that are set."""

    values: dict[str, Any]
    secrets: list[str]


class ChannelKinds:
    """The kinds of the loaded plugins, by name."""

    def __init__(
        self,
        kinds: Iterable[ChannelKind],
        *,
        context: ChannelContext,
        secrets: SecretBox,
        settings: OwnChannelSettings,
    ) -> None:
        #: Passed to every new channel.
        self.context = context
        self._secrets = secrets
        self._settings = settings
        self._kinds = unique_by_name("kind of messenger", kinds)

    @property
    def for_projects(self) -> dict[str, ChannelKind]:
        """The kinds that projects can use for their own channels."""
        allowed = self._settings.kinds
        return {name: kind for name, kind in self._kinds.items() if not allowed or name in allowed}

    @property
    def looks(self) -> list[MessengerLook]:
        """The looks that kinds declare, each once."""
        looks = (kind.look for kind in self._kinds.values())
        return list(dict.fromkeys(look for look in looks if look is not None))

    def create(
        self, identity: ChannelIdentity, kind_name: str, options: Mapping[str, Any]
    ) -> Channel:
        """Raises `WrongSettings`."""
        kind = self._kind(kind_name)
        if identity.project_id is not None:
            options = self._with_operators(kind, options)
        titled = replace(identity, title=kind.title, mark=kind.mark, look=kind.look)
        return kind.create(self.context, titled, validated(kind, options))

    def check_own(self, kind_name: str, options: Mapping[str, Any]) -> None:
        """Raises `WrongSettings`, also for settings that a project can't set."""
        kind = self._kind(kind_name)
        allowed = self._settings.kinds
        if allowed and kind_name not in allowed:
            raise WrongKind("must be one of {choices}", field="plugin", choices=", ".join(allowed))
        for name in sorted(kind.reserved & options.keys()):
            raise WrongSettings("only the operator of the service can set it", field=name)
        validated(kind, self._with_operators(kind, options))

    def shown(self, kind_name: str, options: Mapping[str, Any]) -> ShownSettings:
        """The settings that a project can read. Raises `WrongSettings`."""
        secrets: dict[str, str] = {}
        kind = self._kind(kind_name)
        hidden = kind.reserved | self._operators(kind).keys() - options.keys()
        settings = validated(kind, self._with_operators(kind, options))
        values = settings.model_dump(exclude=set(hidden))
        return ShownSettings(to_jsonable_python(_visible(values, "", secrets)), list(secrets))

    def digests(self, kind_name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Digest of a bot's identity under every secret key, the current one first.

        The identity is the channel's secret settings; other settings may change. Without secrets it is all
        settings. Raises `WrongSettings`.
        """
        secrets: dict[str, str] = {}
        kind = self._kind(kind_name)
        given = set(options) & kind.settings.model_fields.keys()
        complete = self._with_operators(kind, options)
        _visible(validated(kind, complete).model_dump(include=given), "", secrets)
        # JSON has no dates, TOML has.
        text = json.dumps([kind_name, secrets or dict(options)], sort_keys=True, default=str)
        return tuple(self._secrets.keyed_hashes("channel settings", text))

    def _operators(self, kind: ChannelKind) -> Mapping[str, Any]:
        """The operator's settings for all projects' channels of a kind."""
        return self._settings.settings.get(kind.name, {})

    def _with_operators(self, kind: ChannelKind, options: Mapping[str, Any]) -> dict[str, Any]:
        return {**self._operators(kind), **options}

    def _kind(self, name: str) -> ChannelKind:
        kind = self._kinds.get(name)
        if kind is None:
            known = ", ".join(sorted(self._kinds)) or "none"
            raise WrongKind(
                "no loaded plugin has a messenger named {name!r} (known: {choices})",
                field="plugin",
                name=name,
                choices=known,
            )
        return kind


def _is_path(annotation: Any) -> bool:
    if isinstance(annotation, type):
        return issubclass(annotation, PurePath)
    return any(_is_path(part) for part in get_args(annotation))


def validated(kind: ChannelKind, options: Mapping[str, Any]) -> Section:
    """The settings of a channel of that kind. Raises `WrongSettings`."""
    try:
        return kind.settings.model_validate(dict(options))
    except ValidationError as error:
        # Without the input, which may be a token.
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, problem["loc"])) or "settings"
        if problem["type"] == "extra_forbidden":
            raise WrongSettings("there is no such setting", field=where) from None
        raise WrongSettings.made_of(finding.at(where) for finding in to_findings(problem)) from None


def _visible(value: Any, path: str, secrets: dict[str, str]) -> Any:
    """A value without its secrets, which are added to `secrets` by path."""
    if isinstance(value, Mapping):
        parts = {name: (f"{path}.{name}".lstrip("."), part) for name, part in value.items()}
        return {
            name: _visible(part, where, secrets)
            for name, (where, part) in parts.items()
            if not _is_secret(part, where, secrets)
        }
    if isinstance(value, list | tuple | set | frozenset):
        places = [(f"{path}[{number}]", part) for number, part in enumerate(value)]
        return [
            _visible(part, where, secrets)
            for where, part in places
            if not _is_secret(part, where, secrets)
        ]
    return value


def _is_secret(value: Any, path: str, secrets: dict[str, str]) -> bool:
    if not isinstance(value, SecretStr | SecretBytes):
        return False
    hidden = value.get_secret_value()
    secrets[path] = hidden if isinstance(hidden, str) else hidden.hex()
    return True
