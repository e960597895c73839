"""Converts a draft to the API's request body, whose validation the builder uses."""

from typing import Any

from msgsvc_forms.dashboard import options
from msgsvc_forms.dashboard.draft import Draft, Row
from msgsvc_forms.definition import Definition

#: Settings of a question, by which types have them.
HAS = {
    "options": {"choice", "multichoice"},
    "min": {"text", "number", "date", "multichoice"},
    "max": {"text", "number", "date", "multichoice", "rating", "file"},
    "pattern": {"text"},
    "multiline": {"text"},
}


#: Names of what may be a text by language.
TEXTS = {"title", "description", "thanks", "label", "text", "subject"}


def to_body(draft: Draft, *, has: set[str]) -> dict[str, Any]:
    """The body of a form. `has` are the optional parts that the form has now, and that the body may
    remove."""
    head = draft.head
    body: dict[str, Any] = {
        "title": _localized(head, "title") or "",
        "fields": [_field(row) for row in draft.fields],
        "rules": [_rule(row, draft.fields) for row in draft.rules],
        "allowed_origins": head["allowed_origins"].split(),
        "min_fill_seconds": _number(head["min_fill_seconds"] or "0"),
    }
    optional = {
        "description": _localized(head, "description"),
        "thanks": _localized(head, "thanks"),
        "redirect_url": head["redirect_url"].strip() or None,
    }
    return body | {
        name: value for name, value in optional.items() if value is not None or name in has
    }


def other_languages(definition: Definition) -> list[str]:
    """The languages of a form's texts for which the builder has no boxes."""
    found: set[str] = set()

    def look(value: Any) -> None:
        if isinstance(value, list):
            for each in value:
                look(each)
        elif isinstance(value, dict):
            for name, each in value.items():
                if name in TEXTS and isinstance(each, dict):
                    found.update(each)
                else:
                    look(each)

    look(definition.model_dump())
    return sorted(found - {"en", "ru"})


def _field(row: Row) -> dict[str, Any]:
    kind = row["type"]
    made: dict[str, Any] = {"key": row["key"].strip(), "type": kind}
    made["label"] = _localized(row, "label") or ""
    if row["required"]:
        made["required"] = True
    if row["multiline"] and kind in HAS["multiline"]:
        made["multiline"] = True
    if row["pattern"] and kind in HAS["pattern"]:
        made["pattern"] = row["pattern"]
    if kind in HAS["options"]:
        made["options"] = options.from_lines(row["options"])
    for name in ("min", "max"):
        if row[name].strip() and kind in HAS[name]:
            text = row[name].strip()
            made[name] = text if kind == "date" else _number(text)
    return made


def _rule(row: Row, fields: list[Row]) -> dict[str, Any]:
    to: dict[str, Any] = {"kind": row["kind"]}
    match row["kind"]:
        case "subscriber":
            names = ("subscriber_id", "external_id", "channel")
            to |= {name: row[name].strip() for name in names if row[name].strip()}
            to |= _texts(row, "text")
        case "tag":
            to |= {"tag": row["tag"].strip(), **_texts(row, "text")}
        case "ticket":
            to |= {"priority": row["priority"] or "normal", **_texts(row, "subject")}
            tags = [tag.strip() for tag in row["tags"].split(",") if tag.strip()]
            to |= {"tags": tags} if tags else {}
        case "next_field":
            to |= {"after": row["after"]} if row["after"] else {}
            to |= {"field": row["next"]} if row["next"] else {}
    made: dict[str, Any] = {"to": to}
    if row["field"]:
        made["when"] = _condition(row, fields)
    return made


def _condition(row: Row, fields: list[Row]) -> dict[str, Any]:
    made: dict[str, Any] = {"field": row["field"], "op": row["op"] or "exists"}
    text = row["value"].strip()
    if not text:
        return made
    kinds = {field["key"]: field["type"] for field in fields}
    value: Any = text
    if made["op"] == "exists" or kinds.get(row["field"]) == "consent":
        value = {"true": True, "yes": True, "false": False, "no": False}.get(text.lower(), text)
    elif kinds.get(row["field"]) in {"number", "rating"}:
        value = _number(text)
    return {**made, "value": value}


def _texts(row: Row, name: str) -> dict[str, Any]:
    text = _localized(row, name)
    return {} if text is None else {name: text}


def _localized(row: Row, name: str) -> Any:
    """One text for everybody where only the first box holds one; None where none does."""
    english, russian = row[f"{name}_en"].strip(), row[f"{name}_ru"].strip()
    if not russian:
        return english or None
    return {"en": english, "ru": russian} if english else {"ru": russian}


def _number(text: str) -> Any:
    """A number, where it is one: the rules say of anything else what is wrong."""
    for kind in (int, float):
        try:
            return kind(text.replace(",", "."))
        except ValueError:
            continue
    return text
