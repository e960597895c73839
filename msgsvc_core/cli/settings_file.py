"""The commented `msgsvc.toml`, written from the settings' own types, so that it is never stale."""

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from msgsvc_core.settings import Section, Settings, SettingsSection

#: What is written out rather than commented: a person looks for these first.
SHOWN = ("base_url", "database_url", "secret_keys", "plugins")

#: Columns of a comment.
WIDTH = 98

_HEAD = """\
The configuration of msgsvc. Lines that begin with `# name =` show defaults.
Every setting can be given by an environment variable too, which then wins:
MSGSVC_BASE_URL, and with two underscores MSGSVC_SERVER__PORT. `msgsvc doctor` checks it all."""


def settings_file(
    secret_key: str, plugins: Sequence[str], sections: Iterable[SettingsSection]
) -> str:
    """The text of a configuration with that key and those plugins, whose sections are given."""
    top = {
        name: field
        for name, field in Settings.model_fields.items()
        if not _is_section(field) and name != "channels"
    }
    values = {name: field.default for name, field in top.items()}
    values |= {"secret_keys": [secret_key], "plugins": plugins}
    blocks = ["\n".join(f"# {line}" for line in _HEAD.splitlines())]
    blocks += [
        _setting(name, field, values[name], shown=name in SHOWN) for name, field in top.items()
    ]
    blocks += _channels(plugins)
    for name, field in Settings.model_fields.items():
        if _is_section(field):
            blocks.append(_section(name, type(field.default)))
    blocks += [_section(section.name, section.model, "Plugin: ") for section in sections]
    return "\n\n".join(blocks) + "\n"


def to_toml(value: Any) -> str:
    """A value as TOML writes it. JSON's text, numbers and booleans are TOML's too."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{to_toml(str(name))} = {to_toml(item)}" for name, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(to_toml(item) for item in value)}]"
    if isinstance(value, BaseModel):
        return to_toml(value.model_dump(mode="json", exclude_none=True))
    return json.dumps(value, ensure_ascii=False)


def _is_section(field: FieldInfo) -> bool:
    return isinstance(field.default, Section)


def _section(name: str, model: type[BaseModel], before: str = "") -> str:
    doc = (model.__doc__ or "").strip().splitlines()
    lines = [_comment(before + doc[0])] if doc and doc[0] else []
    lines.append(f"[{name}]")
    lines += [
        _setting(field_name, field, field.get_default(call_default_factory=True), shown=False)
        for field_name, field in model.model_fields.items()
    ]
    return "\n".join(lines)


def _setting(name: str, field: FieldInfo, value: Any, *, shown: bool) -> str:
    lines = [_comment(field.description)] if field.description else []
    if shown:
        lines.append(f"{name} = {to_toml(value)}")
    elif value is None or field.is_required():
        # TOML has no null. What follows `=` is left for a person to fill in.
        lines.append(f"# {name} =")
    else:
        lines.append(f"# {name} = {to_toml(value)}")
    return "\n".join(lines)


def _channels(plugins: Sequence[str]) -> list[str]:
    """The default messengers whose plugin is there; without one, a place for those to come."""
    field = Settings.model_fields["channels"]
    channels = field.get_default(call_default_factory=True)
    tables = [
        f"[channels.{name}]\nplugin = {to_toml(channel.plugin)}"
        for name, channel in channels.items()
        if channel.plugin in plugins
    ]
    # An empty table says "none"; without it the defaults would come in, and fail for want of theirs.
    tables = tables or ["[channels]\n# [channels.messenger_a]\n# plugin ="]
    tables[0] = f"{_comment(field.description or '')}\n{tables[0]}"
    return tables


def _comment(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="# ", subsequent_indent="# ")
