"""Languages, and texts that a project writes for people: one for everybody, or one per language.

A language is a tag of BCP 47, as `de` or `pt-BR`. Which of them there are is the setting `languages`; by
default they are those of decision 0075, `en` and `ru`. What comes from outside is held to that
setting (`validate`); what is stored may hold one that is listed no more, and falls back like any other.
"""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

from msgsvc_core.visible_text import check_visible

#: Those of decision 0075, which the service itself speaks.
LANGUAGES = ("en", "ru")

#: Under this name the languages that are listed stand in the context of a validation.
LISTED = "languages"

#: In a JSON Schema, what the listed languages take the place of; no description shows it.
LISTED_MARK = "x-msgsvc-languages"

#: Language, script, region and variants, written as BCP 47 recommends (section 2.1.1).
TAG = r"[a-z]{2,3}(?:-[A-Z][a-z]{3})?(?:-(?:[A-Z]{2}|[0-9]{3}))?(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"
_TAG = re.compile(TAG)

#: Characters of a tag (BCP 47, section 4.4.1).
MAX_TAG_LENGTH = 35


def check_tag(tag: str) -> str:
    """The same. Raises ValueError for what is no tag, or written otherwise."""
    if len(tag) > MAX_TAG_LENGTH or not _TAG.fullmatch(tag):
        raise ValueError("must be a language's tag such as de, pt-BR or zh-Hant")
    return tag


def _check_language(tag: str, info: ValidationInfo) -> str:
    listed = _listed(info)
    if listed is None:
        return check_tag(tag)
    if tag not in listed:
        raise ValueError(f"must be {in_words(listed, 'or')}, which the setting languages lists")
    return tag


#: A field of a body, a query or an answer.
Language = Annotated[
    str,
    AfterValidator(_check_language),
    WithJsonSchema({"type": "string", "enum": [*LANGUAGES], LISTED_MARK: True}),
]

#: `"Sales"`, or `{"en": "Sales", "ru": "Распродажи"}`.
Localized = str | dict[Language, str]


def visible(most: int) -> WrapValidator:
    """For the annotation of a field, `Annotated[Localized, visible(64)]`: each text has 1 to `most`
    characters, and shows something."""

    def check(
        value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> Localized:
        listed = _listed(info)
        try:
            text: Localized = validate(value)
        except ValidationError:
            # Pydantic would tell of each kind that it is not, in terms of ours.
            by = "language" if listed is None else f"{in_words(listed)} (setting languages)"
            raise ValueError(f"must be a text, or an object of texts by {by}") from None
        texts = [text] if isinstance(text, str) else list(text.values())
        if not texts:
            which = "" if listed is None else f" for {in_words(listed, 'or')}"
            raise ValueError(f"give a text, or one{which}")
        for each in texts:
            check_visible(each)
            if len(each) > most:
                raise ValueError(f"must be at most {most} characters")
        return text

    return WrapValidator(check)


def in_words(languages: Sequence[str], last: str = "and") -> str:
    """`en and ru`, or `de, en and ru`."""
    *others, one = languages
    return f"{', '.join(others)} {last} {one}" if others else one


def closest(tag: str, languages: Iterable[str]) -> str | None:
    """That of `languages` which a tag such as `ru-RU`, `pt_BR` or `ZH-hant-tw` means best, by the lookup of
    RFC 4647 (section 3.4); None if it means none of them."""
    by_name = {one.lower(): one for one in languages}
    wanted = tag.strip().lower().replace("_", "-")
    while wanted:
        if wanted in by_name:
            return by_name[wanted]
        wanted = wanted.rpartition("-")[0]
    return None


@cache
def own_name(tag: str) -> str:
    """What a language calls itself, so that who reads no other finds it: `Deutsch`."""
    # Its data about languages are megabytes that who speaks no third one needs nothing of.
    from babel import Locale, UnknownLocaleError  # noqa: PLC0415 - see above

    try:
        name = Locale.parse(tag, sep="-").get_display_name(tag.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        return tag
    return f"{name[:1].upper()}{name[1:]}" if name else tag


def in_language(text: Localized, lang: str, default_lang: str) -> str:
    """The text for somebody who reads `lang`: theirs, else the service's default, else any."""
    return text if isinstance(text, str) else text[language_of(text, lang, default_lang)]


def language_of(by_lang: Collection[str], lang: str, default_lang: str) -> str:
    """In which of the languages there are somebody who reads `lang` is written to: their own or what it is a
    variety of, else the service's default, else any."""
    if lang in by_lang:
        return lang
    found = closest(lang, by_lang) or closest(default_lang, by_lang)
    return found or next(iter(by_lang))


def to_column(text: Localized | None) -> str | None:
    return None if text is None else json.dumps(text, ensure_ascii=False)


def from_column(column: str | None) -> Localized | None:
    if column is None:
        return None
    text: Localized = json.loads(column)
    return text


def _listed(info: ValidationInfo) -> Sequence[str] | None:
    """What a validation's caller holds languages to; None for what is stored."""
    listed: Sequence[str] | None = (info.context or {}).get(LISTED)
    return listed
