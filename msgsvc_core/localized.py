"""Texts that a project writes for people: one for everybody, or one per language."""

import json
from typing import Any, Literal

from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from msgsvc_core.visible_text import check_visible

Language = Literal["en", "ru"]

#: `"Sales"`, or `{"en": "Sales", "ru": "Распродажи"}`.
Localized = str | dict[Language, str]


def visible(most: int) -> WrapValidator:
    """For the annotation of a field, `Annotated[Localized, visible(64)]`: each text has 1 to `most`
    characters, and shows something."""

    def check(value: Any, validate: ValidatorFunctionWrapHandler) -> Localized:
        try:
            text: Localized = validate(value)
        except ValidationError:
            # Pydantic would tell of each kind that it is not, in terms of ours.
            raise ValueError("must be a text, or an object of texts by en and ru") from None
        texts = [text] if isinstance(text, str) else list(text.values())
        if not texts:
            raise ValueError("give a text, or one for en or ru")
        for each in texts:
            check_visible(each)
            if len(each) > most:
                raise ValueError(f"must be at most {most} characters")
        return text

    return WrapValidator(check)


def in_language(text: Localized, lang: str, default_lang: str) -> str:
    """The text for somebody who reads `lang`: theirs, else the service's default, else any."""
    if isinstance(text, str):
        return text
    by_lang = {str(known): each for known, each in text.items()}
    return by_lang.get(lang) or by_lang.get(default_lang) or next(iter(by_lang.values()))


def to_column(text: Localized | None) -> str | None:
    return None if text is None else json.dumps(text, ensure_ascii=False)


def from_column(column: str | None) -> Localized | None:
    if column is None:
        return None
    text: Localized = json.loads(column)
    return text
