"""A form in the builder: unvalidated texts of the page's fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgsvc_core.dashboard import PostedForm
from msgsvc_core.kernel.i18n import Localized
from msgsvc_forms.dashboard import options
from msgsvc_forms.definition import Definition
from msgsvc_forms.fields import FormField

Row = dict[str, str]

#: The boxes of one question, and of one rule.
FIELD_BOXES = (
    "key", "type", "label_en", "label_ru", "required", "options", "min", "max", "pattern", "multiline",
)  # fmt: skip
RULE_BOXES = (
    "kind", "field", "op", "value", "after", "next", "subscriber_id", "external_id", "channel", "tag",
    "text_en", "text_ru", "subject_en", "subject_ru", "priority", "tags",
)  # fmt: skip
HEAD_BOXES = (
    "slug", "title_en", "title_ru", "description_en", "description_ru", "thanks_en", "thanks_ru",
    "redirect_url", "min_fill_seconds", "allowed_origins",
)  # fmt: skip

#: Maximum rows that a page may post; a form has at most 50 questions and 40 rules.
MOST_ROWS = 60


@dataclass(slots=True)
class Draft:
    """`version` is that of the form that is being changed; empty for a new one."""

    head: Row
    fields: list[Row] = field(default_factory=list)
    rules: list[Row] = field(default_factory=list)
    form_id: str = ""
    version: str = ""

    @classmethod
    def new(cls, title: str, lang: str) -> "Draft":
        """The content of a new form: a title in the reader's language and one question, to be edited."""
        box = "title_ru" if lang == "ru" else "title_en"
        head = dict.fromkeys(HEAD_BOXES, "") | {box: title, "min_fill_seconds": "3"}
        return cls(head, [_question(1, "text")])

    @classmethod
    def of(cls, form_id: str, slug: str, version: int, definition: Definition) -> "Draft":
        """A form as it is kept."""
        head = {
            "slug": slug,
            **_pair("title", definition.title),
            **_pair("description", definition.description),
            **_pair("thanks", definition.thanks),
            "redirect_url": definition.redirect_url or "",
            "min_fill_seconds": str(definition.min_fill_seconds),
            "allowed_origins": "\n".join(definition.allowed_origins),
        }
        fields = [_field_row(each) for each in definition.fields]
        rules = [_rule_row(each.model_dump(mode="json")) for each in definition.rules]
        return cls(head, fields, rules, form_id, str(version))

    @classmethod
    def posted(cls, form: PostedForm) -> "Draft":
        """What the page of the builder posts."""
        return cls(
            {name: form.text(name) for name in HEAD_BOXES},
            _rows(form, "f", FIELD_BOXES, _count(form.text("fields"))),
            _rows(form, "r", RULE_BOXES, _count(form.text("rules"))),
            form.text("form_id"),
            form.text("version"),
        )

    @property
    def keys(self) -> list[tuple[str, str]]:
        """The questions to choose from, by key and what is asked."""
        return [
            (row["key"], row["label_en"] or row["label_ru"] or row["key"]) for row in self.fields
        ]

    def step(self, action: str, new_type: str = "text") -> None:
        """Does what a button says, e.g. `field-up-2`; nothing for a name of none."""
        what, _, rest = action.partition("-")
        how, _, number = rest.partition("-")
        rows = self.fields if what == "field" else self.rules
        if how == "add" and len(rows) < MOST_ROWS:
            rows.append(self._next_question(new_type) if what == "field" else _empty_rule())
        at = _count(number)
        if what not in {"field", "rule"} or not number or at >= len(rows):
            return
        to = at + {"up": -1, "down": 1}.get(how, 0)
        if how == "remove":
            rows.pop(at)
        elif 0 <= to < len(rows):
            rows[at], rows[to] = rows[to], rows[at]

    def _next_question(self, kind: str) -> Row:
        keys = {row["key"] for row in self.fields}
        number = len(self.fields) + 1
        while f"question_{number}" in keys:
            number += 1
        return _question(number, kind)


def _question(number: int, kind: str) -> Row:
    return dict.fromkeys(FIELD_BOXES, "") | {"key": f"question_{number}", "type": kind}


def _empty_rule() -> Row:
    return dict.fromkeys(RULE_BOXES, "") | {"kind": "ticket", "priority": "normal"}


def _rows(form: PostedForm, prefix: str, boxes: Sequence[str], count: int) -> list[Row]:
    return [{box: form.text(f"{prefix}{number}_{box}") for box in boxes} for number in range(count)]


def _count(text: str) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= 3
    return min(int(text), MOST_ROWS) if is_number else 0


def _pair(name: str, text: Localized | None) -> Row:
    """A text in its two boxes; one for everybody stands in the first."""
    texts = {"en": text} if isinstance(text, str) else text or {}
    by_lang: Mapping[str, str] = {str(lang): each for lang, each in texts.items()}
    return {f"{name}_en": by_lang.get("en", ""), f"{name}_ru": by_lang.get("ru", "")}


def _field_row(field: FormField) -> Row:
    return {
        "key": field.key,
        "type": field.type,
        **_pair("label", field.label),
        "required": "1" if field.required else "",
        "options": options.to_lines(field.options or ()),
        "min": "" if field.min is None else str(field.min),
        "max": "" if field.max is None else str(field.max),
        "pattern": field.pattern or "",
        "multiline": "1" if field.multiline else "",
    }


def _rule_row(rule: dict[str, Any]) -> Row:
    to, when = rule["to"], rule["when"] or {}
    row = _empty_rule() | {"kind": to["kind"]}
    row |= {"field": when.get("field", ""), "op": when.get("op", "")}
    value = when.get("value")
    row["value"] = (
        str(value).lower() if isinstance(value, bool) else str("" if value is None else value)
    )
    for name in ("subscriber_id", "external_id", "channel", "tag", "priority", "after"):
        row[name] = to.get(name) or row[name]
    row["next"] = to.get("field") or ""
    row["tags"] = ", ".join(to.get("tags") or ())
    return row | _pair("text", to.get("text")) | _pair("subject", to.get("subject"))
