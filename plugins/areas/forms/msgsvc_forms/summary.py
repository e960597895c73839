"""Answers as plain text, for the recipients of a submission."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.content.markup import clipped
from msgsvc_core.kernel.i18n import Localized, Translate, in_language
from msgsvc_forms.definition import Definition
from msgsvc_forms.fields import FormField

#: What stands before further lines of an answer, so that none can pass for another answer.
INDENT = "    "

#: Keys of fields that hold a person's name.
_NAMES = ("name", "full_name", "first_name")


def summarized(
    _: Translate,
    definition: Definition,
    answers: Sequence[Mapping[str, Any]],
    *,
    lang: str,
    default_lang: str,
    head: Localized | None,
    limit: int,
) -> str:
    """A line for each answer below `head`, or the form's title, cut to `limit` UTF-16 code units."""
    lines = [in_language(head or definition.title, lang, default_lang), ""]
    for answer in answers:
        field = definition.field(answer["key"])
        if field is not None:
            label = in_language(field.label, lang, default_lang).rstrip(" :")
            shown = readable(_, field, answer["value"], lang=lang, default_lang=default_lang)
            lines.append(f"{label}: {shown}".replace("\n", f"\n{INDENT}"))
    return clipped("\n".join(lines).strip(), limit)


def readable(_: Translate, field: FormField, value: Any, *, lang: str, default_lang: str) -> str:
    """An answer in readable form: labels of options, names of files."""
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    if field.type == "file":
        return ", ".join(file["filename"] for file in value)
    if field.type in {"choice", "multichoice"}:
        labels = {
            option.value: in_language(option.label, lang, default_lang) for option in field.choices
        }
        chosen: list[str] = value if isinstance(value, list) else [value]
        return ", ".join(labels.get(one, one) for one in chosen)
    return f"{value}/{field.best}" if field.type == "rating" else str(value)


def customer_of(answers: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """The name and the email address among the answers; empty if there are none."""
    name = next((one["value"] for one in answers if one["key"] in _NAMES), "")
    email = next((one["value"] for one in answers if one["type"] == "email"), "")
    return str(name)[:200], email


def files_of(answers: Sequence[Mapping[str, Any]]) -> list[str]:
    """The ids of all files in the answers."""
    return [file["file_id"] for one in answers if one["type"] == "file" for file in one["value"]]
