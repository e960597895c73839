"""Template substitution: `{{ name }}` and `{{ name | default("x") }}`, and nothing else.

Templates have no code and no loops. They are parsed once, in time linear in their length, and braces in
values have no meaning. Values are escaped for their position: in text they are shown as they are and never
become markup, whatever the template has around them; in a URL they can't change scheme, host or path
structure.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape as escape_html
from itertools import count, pairwise
from typing import Annotated, Any, Self
from urllib.parse import quote, urlsplit

from pydantic import BeforeValidator, Field

from msgsvc_core.content.markup import Span, joined, to_html, to_spans
from msgsvc_core.content.outgoing import Format
from msgsvc_core.kernel.errors import InvalidValue, Refusal
from msgsvc_core.security.http_urls import check_http_url

NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"

#: The name in a placeholder: a variable, or an attribute of a mailing's recipient.
VARIABLE_NAME = rf"(?:attributes\.)?{NAME}"

#: The variable whose value is a whole address, made by the service: the recipient's preferences page.
SERVICE_ADDRESS = "preferences_url"

#: Maximum placeholders of a text.
MAX_PLACEHOLDERS = 1_000

#: What checks and previews take for that value; as long as most are.
SAMPLE_ADDRESS = f"https://msgsvc.example/preferences/{'sample' * 15}"

_VARIABLE = re.compile(
    rf"""
    \{{\{{ \s*+ (?P<name>{VARIABLE_NAME}) (?![A-Za-z0-9_]) \s*+
    (?: \| \s*+ default \s*+ \( \s*+ "(?P<default> (?: [^"\\] | \\["\\] )*+ )" \s*+ \) \s*+ )?
    \}}\}}
    """,
    re.VERBOSE,
)

#: Characters with a meaning in our Markdown, including a line break in a link's text and a space at the edge
#: of a mark.
_MARKDOWN_SPECIAL = re.compile(r"[\\`*_~\[\]()\n]|\A\s|\s\Z")


#: Values that no markup treats specially in any position: letters and digits at both ends.
_WORDS = re.compile(r"[^\W_](?:[\w .,-]*[^\W_])?")


class TemplateError(InvalidValue):
    """The text is not a valid template; the message says where and why."""


class AddressError(TemplateError):
    """The resulting URL is not allowed in its position."""


class WrongVariable(Refusal):
    """The variable `name` has an invalid value; `error` is the reason."""

    def __init__(self, name: str, error: InvalidValue) -> None:
        super().__init__(finding.at(name) for finding in error.findings)


class TooLong(Exception):
    """The rendered text exceeds the maximum length."""


def _check_value(value: Any) -> Any:
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InvalidValue("must be a text, a number, or true or false")


VariableName = Annotated[str, Field(pattern=f"^{VARIABLE_NAME}$")]
VariableValue = Annotated[str | int | float | bool, BeforeValidator(_check_value)]
Variables = dict[VariableName, VariableValue]


def to_text(value: str | float | bool) -> str:
    """A value as text; true, false and numbers as in JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _as_it_is(value: str) -> str:
    return value


@dataclass(frozen=True, slots=True)
class Hole:
    """A placeholder for a value; `escape` escapes it for its position."""

    name: str
    default: str | None
    escape: Callable[[str], str] = _as_it_is


Part = str | Hole


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template: fixed texts and placeholders."""

    parts: tuple[Part, ...]

    @property
    def holes(self) -> list[Hole]:
        return [part for part in self.parts if isinstance(part, Hole)]

    def render(self, values: Mapping[str, str], limit: int) -> str:
        """The text with `values` filled in.

        Raises `WrongVariable`, and `TooLong` beyond `limit` characters.
        """
        rendered: list[str] = []
        length = 0
        for part in self.parts:
            text = part if isinstance(part, str) else _filled(part, values, limit)
            length += len(text)
            # Checked per value, not at the end: each of a thousand placeholders may take a megabyte.
            if length > limit:
                raise TooLong
            rendered.append(text)
        return "".join(rendered)


@dataclass(frozen=True, slots=True)
class Piece:
    """A span of a template's text: its content, formatting and link."""

    text: Template
    look: Span
    href: Template | None


@dataclass(frozen=True, slots=True)
class TextTemplate(Template):
    """A template of a message's text; `pieces` is what users see of it."""

    format: Format
    pieces: tuple[Piece, ...] = ()

    def render_text(self, values: Mapping[str, str], limit: int) -> tuple[str, Format]:
        """The text with `values`, and its format. Raises what `render` does.

        In the template's own format if that shows the values as they are. Otherwise in HTML, which can
        express all of it: Markdown has no escapes in code, an unclosed mark of the template could be closed
        by a value, and a mark around an empty value is none.
        """
        text = self.render(values, limit)
        if self._is_plain(values) or (self.format == "rich" and not self._has_references()):
            # Escaped values are text in every place of `rich`.
            return text, self.format
        seen = joined(_seen(piece, values, limit) for piece in self.pieces)
        if seen == to_spans(text, self.format):
            return text, self.format
        text = to_html(seen)
        if len(text) > limit:
            raise TooLong
        return text, "html"

    def _has_references(self) -> bool:
        return any("&" in part for part in self.parts if isinstance(part, str))

    def _is_plain(self, values: Mapping[str, str]) -> bool:
        """Whether substitution is trivial; most texts are neither parsed nor compared."""
        if not self.pieces:
            return True
        if self.format in {"html", "rich"} and self._has_references():
            # A word could complete the name of an HTML character reference.
            return False
        filled = (values.get(hole.name, hole.default or "") for hole in self.holes)
        return all(_WORDS.fullmatch(value) for value in filled)


def _seen(piece: Piece, values: Mapping[str, str], limit: int) -> Span:
    href = None if piece.href is None else piece.href.render(values, limit)
    return Span(piece.text.render(values, limit), piece.look.marks, href)


def _filled(hole: Hole, values: Mapping[str, str], limit: int) -> str:
    value = values.get(hole.name, hole.default)
    if value is None:
        raise WrongVariable(hole.name, InvalidValue("is required by the template"))
    if len(value) > limit:
        raise TooLong
    try:
        return hole.escape(value)
    except InvalidValue as error:
        raise WrongVariable(hole.name, error) from None


def names_in(templates: Sequence[Template]) -> list[str]:
    """The variables, in the order of their first use."""
    return list(dict.fromkeys(hole.name for template in templates for hole in template.holes))


def required_in(templates: Sequence[Template]) -> list[str]:
    """The variables without a default in at least one place."""
    holes = [hole for template in templates for hole in template.holes]
    return list(dict.fromkeys(hole.name for hole in holes if hole.default is None))


def plain_template(text: str) -> Template:
    """Parses a template of a text without markup. Raises `TemplateError`."""
    return Template(_read(text))


def text_template(text: str, text_format: Format) -> TextTemplate:
    """Parses a template of a message's text, whose values can't become markup. Raises `TemplateError`."""
    parts = _read(text)
    if text_format == "plain" or not any(isinstance(part, Hole) for part in parts):
        return TextTemplate(parts, text_format)
    if text_format == "markdown":
        _check_markdown(parts)
    marked = _Marked.of(parts)
    spans = to_spans(marked.text, text_format)
    placed = _placed(parts, _escapes(marked, spans, text_format))
    holes = dict(zip(marked.marks, Template(parts).holes, strict=True))
    pieces = tuple(_piece(span, marked.pattern, holes) for span in spans)
    return TextTemplate(placed, text_format, pieces)


def sample_values(names: Iterable[str]) -> dict[str, str]:
    """The shortest values of variables, to see whether what they make could be sent."""
    return {name: SAMPLE_ADDRESS if name == SERVICE_ADDRESS else "x" for name in names}


def address_template(text: str) -> Template:
    """Parses a template of a URL, in which values are percent-encoded. Raises `TemplateError`."""
    parts = _read(text)
    if len(parts) == 1 and isinstance(parts[0], Hole) and parts[0].name == SERVICE_ADDRESS:
        return Template(_placed(parts, [_as_it_is]))
    marked = _Marked.of(parts)
    _check_address(marked.text, marked.pattern)
    return Template(_placed(parts, [_in_address] * len(marked.marks)))


def _read(text: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    holes = end = 0
    while (start := text.find("{{", end)) >= 0:
        match = _VARIABLE.match(text, start)
        if match is None:
            raise TemplateError(
                'at character {position}: must be {{{{ name }}}} or {{{{ name | default("x") }}}}',
                position=start + 1,
            )
        holes += 1
        if holes > MAX_PLACEHOLDERS:
            raise TemplateError("must have at most {limit} placeholders", limit=MAX_PLACEHOLDERS)
        if start > end:
            parts.append(text[end:start])
        default = match["default"]
        parts.append(Hole(match["name"], default and re.sub(r"\\(.)", r"\1", default)))
        end = match.end()
    if end < len(text) or not parts:
        parts.append(text[end:])
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class _Marked:
    """A text with a word of its own in place of each placeholder, which no fixed text holds."""

    text: str
    marks: list[str]
    #: Matches each of the words. Of constant length, whatever the text is: it is looked for in all of it.
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Self:
        fixed = "".join(part for part in parts if isinstance(part, str)).lower()
        taken = set(re.findall(r"zq(\d{1,5})q", fixed))
        stem = next(f"zq{number}q" for number in count() if str(number) not in taken)
        marks: list[str] = []
        text: list[str] = []
        for part in parts:
            if not isinstance(part, str):
                # A letter ends it: the mark of placeholder 1 must not match in that of placeholder 10.
                marks.append(f"{stem}{len(marks)}x")
            text.append(part if isinstance(part, str) else marks[-1])
        return cls("".join(text), marks, re.compile(rf"{stem}\d{{1,4}}x"))


def _piece(span: Span, pattern: re.Pattern[str], holes: Mapping[str, Hole]) -> Piece:
    href = None if span.href is None else Template(_split(span.href, pattern, holes, _in_address))
    return Piece(Template(_split(span.text, pattern, holes, _as_it_is)), span, href)


def _split(
    marked: str, pattern: re.Pattern[str], holes: Mapping[str, Hole], escape: Callable[[str], str]
) -> tuple[Part, ...]:
    """The template's text with placeholders in place of their words."""
    split = re.split(f"({pattern.pattern})", marked)
    return tuple(
        replace(holes[part], escape=escape) if part in holes else part for part in split if part
    )


def _placed(parts: Sequence[Part], escapes: Sequence[Callable[[str], str]]) -> tuple[Part, ...]:
    waiting = iter(escapes)
    return tuple(
        part if isinstance(part, str) else Hole(part.name, part.default, next(waiting))
        for part in parts
    )


def _escapes(
    marked: _Marked, spans: Sequence[Span], text_format: Format
) -> list[Callable[[str], str]]:
    """For each placeholder, the function that escapes a value at its position."""
    found: dict[str, Callable[[str], str]] = {}
    for span in spans:
        escape: Callable[[str], str] = escape_html
        if text_format == "markdown":
            # Code has no escapes; see `render_text`.
            escape = _as_it_is if {"code", "pre"} & set(span.marks) else _in_markdown
        found.update(dict.fromkeys(marked.pattern.findall(span.text), escape))
    for href in filter(None, (span.href for span in spans)):
        # A link's text may be its address.
        unseen = set(marked.pattern.findall(href)) - found.keys()
        if unseen:
            _check_address(href, marked.pattern)
            found.update(dict.fromkeys(unseen, _in_address))
    if len(found) < len(marked.marks):
        raise TemplateError(
            "a variable stands where nothing of it would be seen, such as inside a tag, or is the"
            " beginning of an address"
        )
    return [found[mark] for mark in marked.marks]


def _check_markdown(parts: Sequence[Part]) -> None:
    """Rejects markup that a value could complete to something else."""
    for part, following in pairwise(parts):
        # After an odd number of backslashes, the value's own escape would have no effect.
        fixed = part if isinstance(part, str) and isinstance(following, Hole) else ""
        if (len(fixed) - len(fixed.rstrip("\\"))) % 2:
            raise TemplateError("a backslash must not stand before a variable")
    marked = _Marked.of(parts)
    for address in re.findall(r"\]\(([^()\s]*)", marked.text):
        _check_address(address, marked.pattern)


def _check_address(address: str, mark: re.Pattern[str]) -> None:
    """Raises `AddressError` unless it is a URL whose scheme and host hold no placeholder's word."""
    first = mark.search(address)
    if first and not address.lower().startswith(("http://", "https://")):
        raise AddressError("a variable can't be the scheme or host of an address")
    if first and mark.search(address.split("/", 3)[2]):
        raise AddressError("a variable can't be part of an address's host")
    try:
        check_http_url(address)
    except InvalidValue as error:
        raise AddressError.made_of(error.findings) from None
    if first and mark.search(urlsplit(address).netloc):
        raise AddressError("a variable can't be part of an address's host")


def _in_address(value: str) -> str:
    """Rejects `..`, which would change the path of the URL, percent-encoded or not."""
    if value and not value.strip("."):
        raise InvalidValue("dots alone can't be part of an address")
    return quote(value, safe="")


def _in_markdown(value: str) -> str:
    return _MARKDOWN_SPECIAL.sub(lambda match: "\\" + match[0], value)
