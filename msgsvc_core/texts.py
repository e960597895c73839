"""Texts that a person reads, in their language. English is written in the code; `.po` files translate.

The compiled form is made in memory at start, so there is no build step and nothing to forget.

Each package has a domain of its own: what it says is looked for in its own catalogue, then in the core's,
and in no other plugin's, where the same English may mean something else ("Open", the verb or the state).
"""

import gettext
import io
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

LANGUAGES = ("en", "ru")

#: The domain of the core's own texts.
CORE = "msgsvc_core"


class Translate(Protocol):
    """`_("Hello, {name}!", name="Ann")`; the values are put in after the translation."""

    def __call__(self, text: str, /, **values: object) -> str: ...

    def ngettext(self, one: str, many: str, count: int, /) -> str:
        """`_.ngettext("{count} day", "{count} days", 3)`: the form that the language has for 3."""
        ...

    def __getitem__(self, module: str, /) -> "Translate":
        """The same language, by the texts of another package: `_["msgsvc_dashboard"]("Show")`."""
        ...


class Texts:
    """The texts of one service, from the core's and every plugin's `locale` folder, each with the name of
    the package whose texts are in it."""

    def __init__(self, folders: Iterable[tuple[str, Path]], default_lang: str) -> None:
        self._default_lang = default_lang
        self._catalogues: dict[tuple[str, str], gettext.NullTranslations] = {
            (CORE, lang): gettext.NullTranslations() for lang in LANGUAGES
        }
        for package, folder in folders:
            for lang in LANGUAGES:
                self._add(package, lang, folder / lang / "LC_MESSAGES" / "messages.po")
        for (package, lang), catalogue in self._catalogues.items():
            if package != CORE:
                catalogue.add_fallback(self._catalogues[CORE, lang])
        self._translations: dict[tuple[str, str], Translate] = {}

    def choose(self, lang: str | None) -> str:
        """The language of ours for a platform's code such as `ru-RU`; the default for others."""
        short = (lang or "").lower().replace("_", "-").partition("-")[0]
        return short if short in LANGUAGES else self._default_lang

    def into(self, lang: str, module: str = CORE) -> Translate:
        """What translates to `lang`. `module` is the `__name__` of who speaks: the texts of its package are
        looked up, then the core's."""
        asked = (module.partition(".")[0], lang)
        found = self._translations.get(asked)
        if found is None:
            package, chosen = asked[0], self.choose(lang)
            catalogue = self._catalogues.get((package, chosen)) or self._catalogues[CORE, chosen]
            found = _Translation(self, chosen, catalogue)
            # Languages come from people too.
            if lang == chosen:
                self._translations[asked] = found
        return found

    def _add(self, package: str, lang: str, path: Path) -> None:
        if not path.exists():
            return
        with path.open("rb") as file:
            catalogue = read_po(file, locale=lang)
        compiled = io.BytesIO()
        write_mo(compiled, catalogue)
        compiled.seek(0)
        own = self._catalogues.setdefault((package, lang), gettext.NullTranslations())
        own.add_fallback(gettext.GNUTranslations(compiled))


def package_of(function: Callable[..., Any]) -> str:
    """Whose texts a function speaks with: its package."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__module__", CORE)).partition(".")[0]


class _Translation:
    """See `Translate`."""

    __slots__ = ("_catalogue", "_lang", "_texts")

    def __init__(self, texts: Texts, lang: str, catalogue: gettext.NullTranslations) -> None:
        self._texts = texts
        self._lang = lang
        self._catalogue = catalogue

    def __getitem__(self, module: str, /) -> Translate:
        return self._texts.into(self._lang, module)

    def __call__(self, text: str, /, **values: object) -> str:
        found = self._catalogue.gettext(text)
        return found.format(**values) if values else found

    def ngettext(self, one: str, many: str, count: int, /) -> str:
        return self._catalogue.ngettext(one, many, count).format(count=count)
