"""The settings of a kind of messenger as form fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import SecretBytes, SecretStr
from pydantic.fields import FieldInfo

from msgsvc_core.channels.kinds import ChannelKind

Sort = Literal["secret", "switch", "choice", "number", "text"]


@dataclass(frozen=True, slots=True)
class SettingField:
    """One setting that a project can set. `default` is empty if there is none."""

    name: str
    description: str
    sort: Sort
    choices: tuple[str, ...]
    default: str
    required: bool


def fields_of(kind: ChannelKind) -> list[SettingField]:
    """The settings of its own channel that a project may set.

    Settings with more than one value are only in the API.
    """
    found = []
    for name, field in kind.settings.model_fields.items():
        if name not in kind.reserved and (sort := _sort(field)) is not None:
            found.append(_field(name, field, sort))
    return found


def read_fields(fields: list[SettingField], typed: Mapping[str, str]) -> dict[str, Any]:
    """Settings from form values: empty ones are omitted, a checkbox always has a value."""
    given: dict[str, Any] = {}
    for field in fields:
        text = typed.get(field.name, "").strip()
        if field.sort == "switch":
            given[field.name] = bool(text)
        elif text:
            given[field.name] = text
    return given


def _field(name: str, field: FieldInfo, sort: Sort) -> SettingField:
    default = "" if field.is_required() or field.default is None else str(field.default)
    return SettingField(
        name=name,
        description=(field.description or "").replace("`", ""),
        sort=sort,
        choices=tuple(map(str, _choices(field))),
        default="" if sort == "secret" else default,
        required=field.is_required(),
    )


def _sort(field: FieldInfo) -> Sort | None:
    kinds = _kinds(field.annotation)
    if _choices(field):
        return "choice"
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind in {SecretStr, SecretBytes}:
        return "secret"
    if kind is bool:
        return "switch"
    if kind in {int, float}:
        return "number"
    return "text" if kind is str else None


def _choices(field: FieldInfo) -> tuple[Any, ...]:
    return get_args(field.annotation) if get_origin(field.annotation) is Literal else ()


def _kinds(annotation: Any) -> set[Any]:
    """The type, or the types of a union without None."""
    parts = get_args(annotation)
    if not parts or get_origin(annotation) is Literal:
        return {annotation}
    return {part for part in parts if part is not type(None)}
