"""Translated texts: the service's own, from catalogues, and those that a project writes.

English is written in the code; `.po` files translate. They are compiled in memory at start: there is no
build step. Each package has a domain of its own: its texts are looked up in its own catalogue, then in the
core's, and in no other plugin's, where the same English may mean something else ("Open", the verb or the
state).
"""

import gettext
import io
import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from msgsvc_core.kernel.visible_text import check_visible

Language = Literal["en", "ru"]

#: `"Sales"`, or `{"en": "Sales", "ru": "Распродажи"}`.
Localized = str | dict[Language, str]


def visible(most: int) -> WrapValidator:
    """For the annotation of a field, `Annotated[Localized, visible(64)]`: each text has 1 to `most`
    characters, and shows something."""

    def check(value: Any, validate: ValidatorFunctionWrapHandler) -> Localized:
        try:
            text: Localized = validate(value)
        except ValidationError:
            # Pydantic would tell of each kind that it is not, in terms of ours.
            raise ValueError("must be a text, or an object of texts by en and ru") from None
        texts = [text] if isinstance(text, str) else list(text.values())
        if not texts:
            raise ValueError("give a text, or one for en or ru")
        for each in texts:
            check_visible(each)
            if len(each) > most:
                raise ValueError(f"must be at most {most} characters")
        return text

    return WrapValidator(check)


def in_language(text: Localized, lang: str, default_lang: str) -> str:
    """The text for somebody who reads `lang`: theirs, else the service's default, else any."""
    if isinstance(text, str):
        return text
    by_lang = {str(known): each for known, each in text.items()}
    return by_lang.get(lang) or by_lang.get(default_lang) or next(iter(by_lang.values()))


def to_column(text: Localized | None) -> str | None:
    return None if text is None else json.dumps(text, ensure_ascii=False)


def from_column(column: str | None) -> Localized | None:
    if column is None:
        return None
    text: Localized = json.loads(column)
    return text


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
