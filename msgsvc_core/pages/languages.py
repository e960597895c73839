"""In which of our languages a page is read."""

from msgsvc_core.kernel.i18n import Language

#: Those that the pages speak, as their links to one another show them.
LANGS: tuple[Language, ...] = ("en", "ru")

_KNOWN: dict[str, Language] = {lang: lang for lang in LANGS}


def preferred(accept_language: str) -> Language | None:
    """The one of ours that the browser likes best; None if it asks for none of them.

    >>> preferred("de-DE, ru;q=0.8, en;q=0.9")
    'en'
    """
    liked = [_liked(part) for part in accept_language.split(",")]
    # `sorted` keeps the order of those that are liked alike.
    for quality, tag in sorted(liked, key=lambda one: -one[0]):
        if quality > 0 and (found := known(tag)) is not None:
            return found
    return None


def known(tag: str) -> Language | None:
    """The language of ours that a code such as `ru-RU` names."""
    return _KNOWN.get(tag.strip().lower().partition("-")[0])


def _liked(part: str) -> tuple[float, str]:
    tag, _, parameters = part.partition(";")
    name, _, value = parameters.strip().partition("=")
    try:
        return (float(value) if name.strip() == "q" else 1.0), tag
    except ValueError:
        return 0.0, tag


def read_language(asked_for: str, accept_language: str, default: str) -> Language:
    """What the address asks for, else what the browser likes, else the service's default."""
    fallback: Language = "ru" if default == "ru" else "en"
    return known(asked_for) or preferred(accept_language) or fallback
