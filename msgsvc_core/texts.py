"""Texts that a person reads, in their language. English is written in the code; `.po` files translate, ours
to Russian, a deployer's or a plugin's to any language that the setting `languages` lists.

The compiled form is made in memory at start, so there is no build step and nothing to forget.

Each package has a domain of its own: what it says is looked for in its own catalogue, then in the core's,
and in no other plugin's, where the same English may mean something else ("Open", the verb or the state).
"""

import gettext
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import product
from pathlib import Path
from string import Formatter
from typing import Any, Protocol

from babel import localedata
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from msgsvc_core.localized import LANGUAGES, closest
from msgsvc_core.settings import SettingsError

#: The domain of the core's own texts.
CORE = "msgsvc_core"

#: Where gettext looks for a language's catalogues, within its folder.
LC_MESSAGES = "LC_MESSAGES"


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
    the package whose texts are in it; what `own`, the deployer's folder, has goes before.

    In English texts stand in the code, in Russian what is not translated is in English. Any other language
    is brought by who wants it; what is missing of it is in the default language.
    """

    def __init__(
        self,
        folders: Iterable[tuple[str, Path]],
        default_lang: str,
        languages: Sequence[str] = LANGUAGES,
        own: Path | None = None,
    ) -> None:
        self.default_lang = default_lang
        self.languages = tuple(languages)
        self._catalogues: dict[tuple[str, str], list[gettext.GNUTranslations]] = {}
        for lang, path in () if own is None else _catalogues_in(own, languages):
            self._add(path.stem, lang, path, is_checked=True)
        for package, folder in folders:
            for lang in languages:
                self._add(package, lang, folder / lang / LC_MESSAGES / "messages.po")
        self._translations: dict[tuple[str, str], Translate] = {}

    @property
    def spoken(self) -> tuple[str, ...]:
        """The languages that the service itself speaks: those of which the core has texts."""
        return tuple(
            lang for lang in self.languages if lang in LANGUAGES or (CORE, lang) in self._catalogues
        )

    def choose(self, lang: str | None) -> str:
        """The language of ours for a platform's code such as `ru-RU`; the default for others."""
        return closest(lang or "", self.languages) or self.default_lang

    def into(self, lang: str, module: str = CORE) -> Translate:
        """What translates to `lang`. `module` is the `__name__` of who speaks: the texts of its package are
        looked up, then the core's."""
        asked = (module.partition(".")[0], lang)
        found = self._translations.get(asked)
        if found is None:
            package, chosen = asked[0], self.choose(lang)
            found = _Translation(self, chosen, self._chain(package, chosen))
            # Languages come from people too.
            if lang == chosen:
                self._translations[asked] = found
        return found

    def _chain(self, package: str, lang: str) -> gettext.NullTranslations:
        """The package's texts and then the core's, in a language and then in the default one."""
        chain = gettext.NullTranslations()
        languages = [lang] if lang in LANGUAGES else dict.fromkeys((lang, self.default_lang))
        for one, owner in product(languages, dict.fromkeys((package, CORE))):
            for catalogue in self._catalogues.get((owner, one), ()):
                # Each chain links its own copies; the texts in them are the same.
                chain.add_fallback(copy(catalogue))
        return chain

    def _add(self, package: str, lang: str, path: Path, *, is_checked: bool = False) -> None:
        if not path.exists():
            return
        with path.open("rb") as file:
            catalogue = read_po(file, locale=_locale_of(lang))
        if is_checked:
            _check(catalogue, path)
        compiled = io.BytesIO()
        write_mo(compiled, catalogue)
        compiled.seek(0)
        read = gettext.GNUTranslations(compiled)
        self._catalogues.setdefault((package, lang), []).append(read)


def _catalogues_in(folder: Path, languages: Sequence[str]) -> Iterator[tuple[str, Path]]:
    for lang in languages:
        for path in sorted((folder / lang / LC_MESSAGES).glob("*.po")):
            yield lang, path


def _locale_of(lang: str) -> str | None:
    """The locale whose rule for plural forms counts; None, for the rule that the file has, where Babel knows
    none."""
    name = lang.replace("-", "_")
    return name if localedata.exists(name) else None


def _check(catalogue: Catalog, path: Path) -> None:
    """Raises `SettingsError` for a translation that names a value which its text has not."""
    for message in catalogue:
        originals = _all_of(message.id)
        known = {name for text in originals for name in _names_in(text)}
        for translation in _all_of(message.string):
            try:
                is_right = not message.id or _names_in(translation) <= known
            except ValueError:
                is_right = False
            if not is_right:
                raise SettingsError(
                    f"locale_dir: {path}: the translation of {originals[0]!r} has other braces"
                )


def _all_of(texts: object) -> Sequence[str]:
    """The text, or its plural forms."""
    return [str(text) for text in texts] if isinstance(texts, list | tuple) else [str(texts or "")]


def _names_in(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


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
