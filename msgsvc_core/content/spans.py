"""Parsed message text: runs with uniform formatting."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

Mark = Literal["bold", "italic", "underline", "strike", "code", "pre"]


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text with uniform formatting. `href` is an http or https URL."""

    text: str
    marks: tuple[Mark, ...] = ()
    href: str | None = None


def safe_href(href: str | None) -> str | None:
    """The URL if it is safe as a link; None for `javascript:` and the like."""
    cleaned = (href or "").strip()
    return cleaned if re.match(r"https?://[^\s/]", cleaned, re.IGNORECASE) else None


def joined(spans: Iterable[Span]) -> list[Span]:
    """The spans without empty ones, and with adjacent ones of the same formatting merged."""
    return [
        Span("".join(span.text for span in alike), marks, href)
        for (marks, href), alike in groupby(
            (span for span in spans if span.text), key=lambda span: (span.marks, span.href)
        )
    ]
