"""Selects the language of a page."""

from collections.abc import Sequence

from msgsvc_core.kernel.i18n import LANGUAGES, closest

#: Languages of an `Accept-Language` header that are looked at. Browsers name some ten at most; a header of
#: 32 KiB could name 16,000.
MOST_LIKED = 50


def preferred(accept_language: str, languages: Sequence[str] = LANGUAGES) -> str | None:
    """The one of `languages` that the browser likes best; None if it asks for none of them.

    >>> preferred("de-DE, ru;q=0.8, en;q=0.9")
    'en'
    """
    liked = [_liked(part) for part in accept_language.split(",", MOST_LIKED)[:MOST_LIKED]]
    # `sorted` is stable: equally preferred languages keep their order.
    for quality, tag in sorted(liked, key=lambda one: -one[0]):
        if quality > 0 and (found := known(tag, languages)) is not None:
            return found
    return None


def known(tag: str, languages: Sequence[str] = LANGUAGES) -> str | None:
    """The one of `languages` that matches a code such as `ru-RU`."""
    return closest(tag, languages)


def _liked(part: str) -> tuple[float, str]:
    tag, _, parameters = part.partition(";")
    name, _, value = parameters.strip().partition("=")
    try:
        return (float(value) if name.strip() == "q" else 1.0), tag
    except ValueError:
        return 0.0, tag


def read_language(
    asked_for: str, accept_language: str, default: str, languages: Sequence[str] = LANGUAGES
) -> str:
    """The language in the URL, else the browser's preferred one, else the service's default. `languages`
    are those of the page: by default the service's own."""
    fallback = default if default in languages else languages[0]
    return known(asked_for, languages) or preferred(accept_language, languages) or fallback
