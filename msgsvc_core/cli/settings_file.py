"""Generates a commented `msgsvc.toml` from the classes of the settings."""

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from msgsvc_core.config.sections import Section, own_users_value
from msgsvc_core.config.settings import Settings, SettingsSection

#: Settings that are written out rather than commented: users look for these first.
SHOWN = ("base_url", "database_url", "secret_keys", "plugins", "profile")

#: Columns of a comment.
WIDTH = 98

_HEAD = """\
The configuration of msgsvc. Lines that begin with `# name =` show defaults.
An environment variable overrides a setting: MSGSVC_BASE_URL, or with two underscores MSGSVC_SERVER__PORT.
`msgsvc doctor` checks this file."""

_SHORT = """\
# The configuration of msgsvc. `msgsvc init --full` writes every setting; `msgsvc doctor` checks this file.
# An environment variable overrides a setting: MSGSVC_BASE_URL, or with two underscores MSGSVC_SERVER__PORT.

# The public address.
{base_url}
# A file, or postgresql://user:password@host/name.
{database_url}
# Encrypts stored secrets: keep a copy in a safe place.
{secret_keys}
# Limits for one site with its own users. For projects of strangers: "tenants".
{profile}
# The areas and messengers that are loaded; `msgsvc plugins` lists what is installed.
{plugins}
"""


def short_file(
    values: Mapping[str, Any],
    channels: Mapping[str, Mapping[str, Any]],
    in_sections: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> str:
    """The text of a configuration with what most installations set: top-level settings with those values, a
    table for each of `channels`, and `in_sections`, values of sections by their name."""
    lines = {name: f"{name} = {to_toml(value)}" for name, value in values.items()}
    tables = [
        "\n".join([f"[{name}]", *(f"{key} = {to_toml(value)}" for key, value in options.items())])
        for name, options in in_sections.items()
    ]
    return "\n\n".join([_SHORT.format_map(lines).rstrip(), *tables, *_channels(channels)]) + "\n"


def settings_file(
    values: Mapping[str, Any],
    channels: Mapping[str, Mapping[str, Any]],
    sections: Iterable[SettingsSection],
    in_sections: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> str:
    """The text of a configuration with every setting: top-level settings with those values, a table for each
    of `channels` with its `plugin` and settings, and the sections of plugins. `in_sections` are values of
    sections, by their name."""
    top = {
        name: field
        for name, field in Settings.model_fields.items()
        if not _is_section(field) and name != "channels"
    }
    defaults = {name: field.get_default(call_default_factory=True) for name, field in top.items()}
    values = defaults | dict(values)
    blocks = ["\n".join(f"# {line}" for line in _HEAD.splitlines())]
    blocks += [
        _setting(name, field, values[name], shown=name in SHOWN) for name, field in top.items()
    ]
    blocks += _channels(channels)
    for name, field in Settings.model_fields.items():
        if _is_section(field):
            blocks.append(_section(name, type(field.default), values=in_sections.get(name, {})))
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


def _section(
    name: str,
    model: type[BaseModel],
    before: str = "",
    values: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    doc = (model.__doc__ or "").strip().splitlines()
    lines = [_comment(before + doc[0])] if doc and doc[0] else []
    lines.append(f"[{name}]")
    lines += [
        _setting(
            field_name,
            field,
            values.get(field_name, field.get_default(call_default_factory=True)),
            shown=field_name in values,
        )
        for field_name, field in model.model_fields.items()
    ]
    return "\n".join(lines)


def _setting(name: str, field: FieldInfo, value: Any, *, shown: bool) -> str:
    lines = [_comment(field.description)] if field.description else []
    for_own = own_users_value(field)
    if for_own is not None and not shown:
        lines.append(f"# In the profile `tenants`: {to_toml(value)}.")
        lines.append(f"# {name} = {to_toml(for_own)}")
    elif shown:
        lines.append(f"{name} = {to_toml(value)}")
    elif value is None or field.is_required():
        # TOML has no null: the value is left for the user to fill in.
        lines.append(f"# {name} =")
    else:
        lines.append(f"# {name} = {to_toml(value)}")
    return "\n".join(lines)


def _channels(channels: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A table for each messenger, or a commented example if there is none."""
    tables = [
        "\n".join(
            [f"[channels.{name}]", *(f"{key} = {to_toml(value)}" for key, value in options.items())]
        )
        for name, options in channels.items()
    ]
    # An empty table means "none"; without it the default channels would apply, whose plugin may be missing.
    tables = tables or ["[channels]\n# [channels.messenger_a]\n# plugin ="]
    tables[0] = f"{_comment(Settings.model_fields['channels'].description or '')}\n{tables[0]}"
    return tables


def _comment(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="# ", subsequent_indent="# ")
