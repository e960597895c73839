"""Texts that a person reads, in their language. English is written in the code; `.po` files translate.

The compiled form is made in memory at start, so there is no build step and nothing to forget.
"""

import gettext
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

LANGUAGES = ("en", "ru")


class Translate(Protocol):
    """`_("Hello, {name}!", name="Ann")`; the values are put in after the translation."""

    def __call__(self, text: str, /, **values: object) -> str: ...

    def ngettext(self, one: str, many: str, count: int, /) -> str:
        """`_.ngettext("{count} day", "{count} days", 3)`: the form that the language has for 3."""
        ...


class Texts:
    """The texts of one service, from the core's and every plugin's `locale` folder."""

    def __init__(self, folders: Iterable[Path], default_lang: str) -> None:
        self._default_lang = default_lang
        self._catalogues: dict[str, gettext.NullTranslations] = {
            lang: gettext.NullTranslations() for lang in LANGUAGES
        }
        for folder in folders:
            for lang in LANGUAGES:
                self._add(lang, folder / lang / "LC_MESSAGES" / "messages.po")

    def choose(self, lang: str | None) -> str:
        """The language of ours for a platform's code such as `ru-RU`; the default for others."""
        short = (lang or "").lower().replace("_", "-").partition("-")[0]
        return short if short in LANGUAGES else self._default_lang

    def into(self, lang: str) -> Translate:
        """What translates to `lang`."""
        return _Translation(self._catalogues[self.choose(lang)])

    def _add(self, lang: str, path: Path) -> None:
        if not path.exists():
            return
        with path.open("rb") as file:
            catalogue = read_po(file, locale=lang)
        compiled = io.BytesIO()
        write_mo(compiled, catalogue)
        compiled.seek(0)
        self._catalogues[lang].add_fallback(gettext.GNUTranslations(compiled))


class _Translation:
    """See `Translate`."""

    __slots__ = ("_catalogue",)

    def __init__(self, catalogue: gettext.NullTranslations) -> None:
        self._catalogue = catalogue

    def __call__(self, text: str, /, **values: object) -> str:
        found = self._catalogue.gettext(text)
        return found.format(**values) if values else found

    def ngettext(self, one: str, many: str, count: int, /) -> str:
        return self._catalogue.ngettext(one, many, count).format(count=count)
