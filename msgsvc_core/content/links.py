"""The http and https URLs that a reader of a message can open, and their replacement.

These are the targets of links, URLs that messengers turn into links in the visible text, and URLs of buttons.
Code is left out: messengers make no links of it, and readers copy it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from msgsvc_core.content.blocks import from_rich, spans_of, to_rich, with_spans
from msgsvc_core.content.markup import Span, to_html, to_spans
from msgsvc_core.content.outgoing import Button, Format, OutgoingMessage
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.security.http_urls import check_http_url

#: A URL and the signs after it; of those, `_without_signs` leaves what belongs to the sentence.
_URL = re.compile(r"(?<![\w/])https?://[^\s<>\"«»“”]+", re.IGNORECASE)

#: Signs at the end of a URL that messengers take for the sentence's.
_SIGNS = ".,;:!?'*_~…"

_BRACKETS = {")": "(", "]": "[", "}": "{"}

#: The URL to use in place of one; None to keep it.
Replacement = Callable[[str], str | None]


def urls_of(message: OutgoingMessage) -> list[str]:
    """The URLs that a reader can open, without duplicates, in the order of the message."""
    found = [*_in_text(message), *(url for url in _of_buttons(message) if _is_valid(url))]
    return list(dict.fromkeys(found))


def with_urls(message: OutgoingMessage, replacement: Replacement) -> OutgoingMessage:
    """The message with other URLs. Text with markup becomes HTML if a URL in it is replaced, since that can
    express all of it; `rich` stays so."""
    text, text_format = _text_with(message, replacement)
    return replace(
        message,
        text=text,
        format=text_format,
        buttons=tuple(tuple(_button(each, replacement) for each in row) for row in message.buttons),
    )


def _in_text(message: OutgoingMessage) -> Iterator[str]:
    for span, places in _with_places(message):
        if span.href is not None and _is_valid(span.href):
            yield span.href
        yield from (span.text[start:end] for start, end in places)


def _with_places(message: OutgoingMessage) -> Iterator[tuple[Span, Sequence[tuple[int, int]]]]:
    """What readers see, with the places of URLs in each; texts of two blocks are no one text."""
    parts: Iterable[Sequence[Span]] = (
        spans_of(from_rich(message.text))
        if message.format == "rich"
        else [to_spans(message.text, message.format)]
    )
    for spans in parts:
        yield from zip(spans, _places(spans), strict=True)


def _of_buttons(message: OutgoingMessage) -> Iterator[str]:
    return (each.url for row in message.buttons for each in row if each.url is not None)


def _text_with(message: OutgoingMessage, replacement: Replacement) -> tuple[str, Format]:
    if message.format == "rich":
        return _rich_with(message.text, replacement), "rich"
    spans = to_spans(message.text, message.format)
    changed = [
        _span(span, places, replacement) for span, places in zip(spans, _places(spans), strict=True)
    ]
    if changed == spans:
        return message.text, message.format
    if message.format == "plain":
        return "".join(span.text for span in changed), "plain"
    return to_html(changed), "html"


def _rich_with(text: str, replacement: Replacement) -> str:
    blocks = from_rich(text)
    spans: list[Span] = []
    changed: list[Span] = []
    for part in spans_of(blocks):
        spans += part
        changed += [_span(*each, replacement) for each in zip(part, _places(part), strict=True)]
    return text if changed == spans else to_rich(with_spans(blocks, iter(changed)))


def _span(span: Span, places: Sequence[tuple[int, int]], replacement: Replacement) -> Span:
    text, done = "", 0
    for start, end in places:
        url = span.text[start:end]
        text += span.text[done:start] + (replacement(url) or url)
        done = end
    href = span.href and (replacement(span.href) or span.href)
    return replace(span, text=text + span.text[done:], href=href)


def _button(button: Button, replacement: Replacement) -> Button:
    url = None if button.url is None else replacement(button.url)
    return button if url is None else replace(button, url=url)


def _places(spans: Sequence[Span]) -> list[list[tuple[int, int]]]:
    """Where the URLs in the text of each span are. One that has markup within it is in none of them: half of
    it would be replaced."""
    text = "".join(span.text for span in spans)
    urls = [
        (match.start(), match.start() + len(_without_signs(match[0])))
        for match in _URL.finditer(text)
    ]
    places: list[list[tuple[int, int]]] = []
    start = 0
    for span in spans:
        end = start + len(span.text)
        is_code = {"code", "pre"} & set(span.marks)
        places.append(
            [
                (first - start, last - start)
                for first, last in urls
                if start <= first and last <= end and not is_code and _is_valid(text[first:last])
            ]
        )
        start = end
    return places


def _without_signs(url: str) -> str:
    while url:
        last = url[-1]
        opening = _BRACKETS.get(last)
        closes_nothing = opening is not None and url.count(opening) < url.count(last)
        if last not in _SIGNS and not closes_nothing:
            break
        url = url[:-1]
    return url


def _is_valid(url: str) -> bool:
    try:
        check_http_url(url)
    except InvalidValue:
        return False
    return True
