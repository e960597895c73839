"""Renders a template's contents, which are parsed once, for a language and variables."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from msgsvc_core.api.validation import field_path, validate
from msgsvc_core.content.outgoing import Format
from msgsvc_core.content.substitution import (
    AddressError,
    Template,
    TemplateError,
    TextTemplate,
    TooLong,
    WrongVariable,
    address_template,
    names_in,
    plain_template,
    required_in,
    text_template,
)
from msgsvc_core.kernel.errors import InvalidUrl, InvalidValue, ValidationFailed
from msgsvc_core.kernel.i18n import Localized, language_of
from msgsvc_core.messages.content import Content
from msgsvc_core.messages.limits import is_too_long, length_of_markup, too_long
from msgsvc_core.messages.templates.models import ADDRESS_LENGTH, TemplateContent

#: Number of cached parsed contents. They are looked up by their text, so none can be stale.
KEPT = 256

Read = Callable[[str], Template]


@dataclass(frozen=True)
class Rendering:
    """Parsed contents; `texts` by language or None, and by their place in the message."""

    content: TemplateContent
    texts: Mapping[tuple[str | int, ...], Mapping[str | None, Template]]

    @cached_property
    def variables(self) -> list[str]:
        return names_in(self._templates)

    @cached_property
    def required(self) -> list[str]:
        return required_in(self._templates)

    @property
    def _templates(self) -> list[Template]:
        return [template for by_lang in self.texts.values() for template in by_lang.values()]

    def render(self, lang: str, default_lang: str, values: Mapping[str, str], most: int) -> Content:
        """The message; `most` is the maximum length of its text.

        Raises `WrongVariable`, and `ValidationFailed` naming the field with invalid values. The values that
        any language needs are required for all: a call must not fail for some recipients only.
        """
        for name in self.required:
            if name not in values:
                raise WrongVariable(name, InvalidValue("is required by the template"))
        sent: dict[str, Any] = self.content.model_dump(exclude_defaults=True)
        for place, by_lang in self.texts.items():
            template = _chosen(by_lang, lang, default_lang)
            text, text_format = _rendered(place, template, values, most)
            _put(sent, place, text)
            if text_format is not None:
                sent["format"] = text_format
        return validate(Content, sent)


def read_content(content: TemplateContent) -> Rendering:
    """Parses every text. Raises `ValidationFailed`, naming the field, for an invalid template."""
    texts: dict[tuple[str | int, ...], dict[str | None, Template]] = {}
    for place, text, read in _sources(content):
        by_lang: Mapping[Any, str] = {None: text} if isinstance(text, str) else text
        for lang, source in by_lang.items():
            try:
                texts.setdefault(place, {})[lang] = read(source)
            except TemplateError as error:
                where = field_path(place if lang is None else (*place, lang))
                is_url = isinstance(error, AddressError) and place[-1] == "url"
                refusal = InvalidUrl if is_url else ValidationFailed
                raise refusal.because(error, field=where) from None
    return Rendering(content, texts)


@lru_cache(maxsize=KEPT)
def read_column(column: str) -> Rendering:
    """Like `read_content`, for the JSON of a row."""
    return read_content(TemplateContent.model_validate_json(column))


def _sources(
    content: TemplateContent,
) -> Iterator[tuple[tuple[str | int, ...], Localized, Read]]:
    """Every text of the contents that may have variables: its place, the text, and its language."""
    yield ("text",), content.text, lambda text: text_template(text, content.format)
    for number, row in enumerate(content.buttons):
        for position, button in enumerate(row):
            at = ("buttons", number, position)
            yield (*at, "text"), button.text, plain_template
            if button.url is not None:
                yield (*at, "url"), button.url, address_template
            if button.data is not None:
                yield (*at, "data"), button.data, plain_template
    if content.media is not None:
        yield ("media", "url"), content.media.url, address_template
        if content.media.filename is not None:
            yield ("media", "filename"), content.media.filename, plain_template


def _chosen(by_lang: Mapping[str | None, Template], lang: str, default_lang: str) -> Template:
    if None in by_lang:
        return by_lang[None]
    # A text for all languages is alone.
    written = [each for each in by_lang if each is not None]
    return by_lang[language_of(written, lang, default_lang)]


def _rendered(
    place: tuple[str | int, ...], template: Template, values: Mapping[str, str], limit: int
) -> tuple[str, Format | None]:
    """The rendered text at a place, with its format if it has markup."""
    where = field_path(place)
    if not isinstance(template, TextTemplate):
        try:
            return template.render(values, ADDRESS_LENGTH), None
        except TooLong:
            raise too_long(0, "plain", ADDRESS_LENGTH, where) from None
    most = length_of_markup(template.format, limit)
    try:
        text, text_format = template.render_text(values, most)
    except TooLong:
        raise too_long(most + 1, template.format, limit, where) from None
    if is_too_long(text, text_format, limit):
        raise too_long(len(text), text_format, limit, where)
    return text, text_format


def _put(message: dict[str, Any], place: tuple[str | int, ...], text: str) -> None:
    *way, last = place
    target: Any = message
    for step in way:
        target = target[step]
    target[last] = text
