"""Translated texts: the service's own, from catalogues, and those that a project writes.

The code has English texts, and `.po` files translate them. They are compiled in memory at start: there is no
build step. Each package has a domain of its own: its texts are looked up in its own catalogue, then in the
core's, and in no other plugin's, where the same English may mean something else ("Open", the verb or the
state).
"""

import gettext
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from functools import cache, lru_cache, partial
from itertools import product
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Protocol

from babel import localedata
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from pydantic import (
    AfterValidator,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

from msgsvc_core.kernel.errors import (
    Finding,
    InvalidValue,
    Reasons,
    Refusal,
    SettingsError,
    findings_of,
)
from msgsvc_core.kernel.visible_text import check_visible

#: The languages of the service's own texts (decision 0075).
LANGUAGES = ("en", "ru")

#: The name of the accepted languages in the context of a validation.
LISTED = "languages"

#: Language, script, region and variants, written as BCP 47 recommends (section 2.1.1): a language of texts.
TAG = r"[a-z]{2,3}(?:-[A-Z][a-z]{3})?(?:-(?:[A-Z]{2}|[0-9]{3}))?(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"
_TAG = re.compile(TAG)

#: Maximum characters of a tag (BCP 47, section 4.4.1).
MAX_TAG_LENGTH = 35

#: Maximum characters of a tag that is looked up among ours: the lookup takes quadratic time, and browsers and
#: messengers report whatever they like.
MAX_LOOKUP_LENGTH = 100


#: What BCP 47 calls well-formed (section 2.1), in lower case.
_WELL_FORMED = re.compile(
    r"(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?"
    r"(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*(?:-[0-9a-wyz](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?"
    r"|x(?:-[a-z0-9]{1,8})+"
    # Irregular tags of RFC 3066 that stay well-formed.
    r"|en-gb-oed|i-(?:ami|bnn|default|enochian|hak|klingon|lux|mingo|navajo|pwn|tao|tay|tsu)"
    r"|sgn-(?:be-fr|be-nl|ch-de)"
)


def canonical_tag(tag: str) -> str:
    """A person's language tag, with the letters' case as BCP 47 recommends (section 2.1.1): `zh-hant-tw` is
    `zh-Hant-TW`. Raises ValueError for one that is not well-formed."""
    lower = tag.lower()
    if len(tag) > MAX_TAG_LENGTH or not tag.isascii() or not _WELL_FORMED.fullmatch(lower):
        raise InvalidValue(
            "must be a language tag of BCP 47 such as de, pt-BR or zh-Hant-TW, of at most {limit} characters",
            limit=MAX_TAG_LENGTH,
        )
    first, *others = lower.split("-")
    subtags, is_extension = [first], len(first) == 1
    for each in others:
        is_extension = is_extension or len(each) == 1
        subtags.append(each if is_extension else _CASES.get(len(each), str.lower)(each))
    return "-".join(subtags)


#: The case of a region and of a script, by their lengths.
_CASES: dict[int, Callable[[str], str]] = {2: str.upper, 4: str.title}


def reported_tag(tag: str | None) -> str | None:
    """The canonical form of a tag that a platform or another provider reports, also one like `pt_BR`; None
    for what is no tag."""
    try:
        return canonical_tag((tag or "").strip().replace("_", "-"))
    except InvalidValue:
        return None


def check_tag(tag: str) -> str:
    """The tag. Raises ValueError for an invalid tag, or one that is not in canonical form."""
    if len(tag) > MAX_TAG_LENGTH or not _TAG.fullmatch(tag):
        raise InvalidValue("must be a language's tag such as de, pt-BR or zh-Hant")
    return tag


def _check_language(tag: str, info: ValidationInfo) -> str:
    listed = _listed(info)
    if listed is None:
        return check_tag(tag)
    if tag not in listed:
        raise InvalidValue(
            "must be {languages}, which the setting languages lists",
            languages=in_words(listed, "or"),
        )
    return tag


#: A language in a body, a query or a response, of those in the setting `languages`. Its schema is no
#: enumeration: clients keep working when a service adds a language.
Language = Annotated[
    str,
    AfterValidator(_check_language),
    WithJsonSchema({"type": "string", "examples": ["en"]}),
]

#: A person's language in a body: any tag, in canonical form.
LanguageTag = Annotated[
    str,
    AfterValidator(canonical_tag),
    WithJsonSchema({"type": "string"}),
]

#: `"Sales"`, or `{"en": "Sales", "ru": "Распродажи"}`.
Localized = str | dict[Language, str]


def visible(limit: int) -> WrapValidator:
    """Annotation for a field, `Annotated[Localized, visible(64)]`: each text has 1 to `limit` characters,
    at least one of them visible."""

    def check(
        value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> Localized:
        listed = _listed(info)
        try:
            text: Localized = validate(value)
        except ValidationError:
            # Pydantic would report one error per member of the union, in terms of our types.
            by = "language" if listed is None else f"{in_words(listed)} (setting languages)"
            raise InvalidValue(
                "must be a text, or an object of texts by {languages}", languages=by
            ) from None
        texts = [text] if isinstance(text, str) else list(text.values())
        if not texts:
            if listed is None:
                raise InvalidValue("give a text")
            raise InvalidValue(
                "give a text, or one for {languages}", languages=in_words(listed, "or")
            )
        for each in texts:
            check_visible(each)
            if len(each) > limit:
                raise InvalidValue("must be at most {limit} characters", limit=limit)
        return text

    return WrapValidator(check)


def in_words(languages: Sequence[str], last: str = "and") -> str:
    """`en and ru`, or `de, en and ru`."""
    *others, one = languages
    return f"{', '.join(others)} {last} {one}" if others else one


#: Codes that are out of use, or name a group, as older telephones report them.
_ALIASES = {
    "in": "id",
    "iw": "he",
    "ji": "yi",
    "mo": "ro",
    "no": "nb",
    "sh": "sr-latn",
    "tl": "fil",
}

#: The script in which languages of several are written, where a tag names none: by language, and by language
#: and country (CLDR, likely subtags). Babel has the whole table, which takes 5 MB of each process.
_SCRIPTS = {
    "az": "latn",
    "bs": "latn",
    "kk": "cyrl",
    "ku": "latn",
    "mn": "cyrl",
    "pa": "guru",
    "pa-pk": "arab",
    "sr": "cyrl",
    "sr-me": "latn",
    "uz": "latn",
    "uz-af": "arab",
    "yue": "hant",
    "yue-cn": "hans",
    "zh": "hans",
    "zh-hk": "hant",
    "zh-mo": "hant",
    "zh-tw": "hant",
}

#: The language, an extended one, the script and the country of a tag in lower case.
_SUBTAGS = re.compile(r"([a-z]+)(?:-([a-z]{3})\b)*(?:-([a-z]{4})\b)?(?:-([a-z]{2}|\d{3})\b)?")


def closest(tag: str, languages: Iterable[str]) -> str | None:
    """The one of `languages` that matches a tag such as `ru-RU`, `pt_BR` or `ZH-hant-tw` best; None if none
    matches.

    By the lookup of RFC 4647 (section 3.4), `pt` for `pt-BR`, with the script that a country writes in, so
    that `zh-TW` is `zh-Hant`; failing that, the first sibling in the same script, `pt-PT` for `pt-BR`.
    """
    if len(tag) > MAX_LOOKUP_LENGTH:
        return None
    by_name = {one.lower(): one for one in languages}
    whole = tag.strip().lower().replace("_", "-")
    first, hyphen, rest = whole.partition("-")
    for wanted in dict.fromkeys((whole, f"{_ALIASES.get(first, first)}{hyphen}{rest}")):
        found = _looked_up(wanted, by_name) or _sibling_of(wanted, by_name)
        if found is not None:
            return by_name[found]
    return None


def _looked_up(tag: str, names: Collection[str]) -> str | None:
    language, script = _language_and_script(tag)
    # The script goes before what RFC 4647 comes to last, the bare language, which may be written in another.
    ends = [f"{language}-{script}"] if script and "-" in tag else []
    wanted = tag
    while "-" in wanted:
        if wanted in names:
            return wanted
        wanted = wanted.rpartition("-")[0]
    return next((name for name in (*ends, wanted) if name in names), None)


def _sibling_of(tag: str, names: Iterable[str]) -> str | None:
    """The first variety of the language in its script. The bare language may mean any."""
    language, script = _language_and_script(tag)
    siblings = [
        (name, theirs)
        for name in names
        for spoken, theirs in [_language_and_script(name)]
        if spoken == language != ""
    ]
    alike = [name for name, theirs in siblings if script is None or theirs in {None, script}]
    others = [name for name, _ in siblings] if tag == language else []
    return next(iter([*alike, *others]), None)


def _language_and_script(tag: str) -> tuple[str, str | None]:
    """Of a tag in lower case; the script is None where the language has but one."""
    found = _SUBTAGS.match(tag)
    if found is None:
        return "", None
    language, extended, script, country = found.groups()
    spoken = extended or language
    likely = _SCRIPTS.get(f"{spoken}-{country}") or _SCRIPTS.get(spoken) or _SCRIPTS.get(language)
    return language, script or likely


@cache
def own_name(tag: str) -> str:
    """The language's name for itself, so that its speakers recognise it: `Deutsch`."""
    # Babel's language data takes megabytes; deployments without a third language do not need it.
    from babel import Locale, UnknownLocaleError  # noqa: PLC0415 - see above

    try:
        name = Locale.parse(tag, sep="-").get_display_name(tag.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        return tag
    return f"{name[:1].upper()}{name[1:]}" if name else tag


def in_language(text: Localized, lang: str, default_lang: str) -> str:
    """The text for a reader of `lang`: that language, else the service's default, else any."""
    return text if isinstance(text, str) else text[language_of(text, lang, default_lang)]


def language_of(by_lang: Collection[str], lang: str, default_lang: str) -> str:
    """The language used for a reader of `lang`: the `closest` one, else the one closest to the service's
    default, else any."""
    if lang in by_lang:
        return lang
    found = closest(lang, by_lang) or closest(default_lang, by_lang)
    return found or next(iter(by_lang))


def to_column(text: Localized | None) -> str | None:
    return None if text is None else json.dumps(text, ensure_ascii=False)


def from_column(column: str | None) -> Localized | None:
    if column is None:
        return None
    text: Localized = json.loads(column)
    return text


def _listed(info: ValidationInfo) -> Sequence[str] | None:
    """The languages that the validation's caller accepts; None for stored values, which accept any."""
    listed: Sequence[str] | None = (info.context or {}).get(LISTED)
    return listed


#: The domain of the core's own texts.
CORE = "msgsvc_core"

#: The folder of a language's catalogues, for gettext.
LC_MESSAGES = "LC_MESSAGES"


class Translate(Protocol):
    """`_("Hello, {name}!", name="Ann")`; the values are inserted after the translation. `{limit:,}` groups
    digits as the language does."""

    def __call__(self, text: str, /, **values: object) -> str: ...

    def ngettext(self, one: str, many: str, count: int, /) -> str:
        """`_.ngettext("{count} day", "{count} days", 3)`: the plural form for 3. The count's digits are
        grouped: `12,500 days`."""
        ...

    def pgettext(self, context: str, text: str, /) -> str:
        """A text with several translations: `_.pgettext("state", …)`. A catalogue that does not know
        the context has the translation of the text alone."""
        ...

    def __getitem__(self, module: str, /) -> "Translate":
        """The translator of another package, in the same language: `_["msgsvc_dashboard"]("Show")`."""
        ...


#: A title with the texts of the package that declares it: `lambda _: _("Ticket answered")`.
Title = Callable[[Translate], str]


def titled(_: Translate, title: Title) -> str:
    """The title in the reader's language, by the texts of its own package."""
    return title(_[package_of(title)])


class Texts:
    """Message catalogues of one service: the core's and every plugin's `locale` folder, each with its
    package name. Catalogues in `own`, the deployer's folder, take precedence.

    Source texts are English; untranslated Russian texts fall back to English. Other languages are supplied
    by the deployer and fall back to the default language.
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
        """The languages of the service's own texts: those with a catalogue of the core."""
        return tuple(
            lang for lang in self.languages if lang in LANGUAGES or (CORE, lang) in self._catalogues
        )

    def choose(self, *tags: str | None) -> str:
        """The supported language that is `closest` to the first of the tags, such as `ru-RU`, that has one;
        the default language if none has."""
        found = (closest(tag, self.languages) for tag in tags if tag)
        return next((lang for lang in found if lang is not None), self.default_lang)

    def into(self, lang: str, module: str = CORE) -> Translate:
        """Translator to `lang`. `module` is the caller's `__name__`: its package's catalogue is searched
        first, then the core's."""
        asked = (module.partition(".")[0], lang)
        found = self._translations.get(asked)
        if found is None:
            package, chosen = asked[0], self.choose(lang)
            found = _Translation(self, chosen, self._chain(package, chosen))
            # Languages are user input too.
            if lang == chosen:
                self._translations[asked] = found
        return found

    def _chain(self, package: str, lang: str) -> gettext.NullTranslations:
        """The catalogues of the package and of the core, in a language and then in the default one."""
        chain = gettext.NullTranslations()
        languages = [lang] if lang in LANGUAGES else dict.fromkeys((lang, self.default_lang))
        for one, owner in product(languages, dict.fromkeys((package, CORE))):
            for catalogue in self._catalogues.get((owner, one), ()):
                # Each chain links its own copies; the texts in them are the same.
                chain.add_fallback(copy(catalogue))
        return chain

    def _add(self, package: str, lang: str, path: Path, *, is_checked: bool = False) -> None:
        try:
            status = path.stat()
        except FileNotFoundError:
            return
        read = _read_catalogue(path, lang, is_checked, status.st_mtime_ns, status.st_size)
        self._catalogues.setdefault((package, lang), []).append(read)


@lru_cache(maxsize=256)
def _read_catalogue(
    path: Path, lang: str, is_checked: bool, _mtime_ns: int, _size: int
) -> gettext.GNUTranslations:
    """A compiled catalogue, kept for the process while the file stays the same: compiling them is most of
    what building a `Service` takes. `_chain` copies it, so services may share it."""
    with path.open("rb") as file:
        catalogue = read_po(file, locale=_locale_of(lang))
    if is_checked:
        _check(catalogue, path)
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


def _catalogues_in(folder: Path, languages: Sequence[str]) -> Iterator[tuple[str, Path]]:
    for lang in languages:
        for path in sorted((folder / lang / LC_MESSAGES).glob("*.po")):
            yield lang, path


def _locale_of(lang: str) -> str | None:
    """The locale with the rule for plural forms; None, for the rule in the file, if Babel does not know
    the language."""
    name = lang.replace("-", "_")
    return name if localedata.exists(name) else None


def _check(catalogue: Catalog, path: Path) -> None:
    """Raises `SettingsError` for a translation with a placeholder that its text does not have."""
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
    """The text, or all its plural forms."""
    return [str(text) for text in texts] if isinstance(texts, list | tuple) else [str(texts or "")]


def _names_in(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def explained(
    findings: Iterable[Finding], translate: Translate, label: Callable[[str], str] = str
) -> str:
    """The message of a refusal in a language: each text by the catalogue of its package, or else the
    core's. `label` returns the displayed name of a field."""
    return "; ".join(_explained(finding, translate, label) for finding in findings)


def _explained(finding: Finding, translate: Translate, label: Callable[[str], str]) -> str:
    by_package = translate[finding.package] if finding.package else translate
    params = {
        name: explained(findings_of(value), translate, label)
        if isinstance(value, Refusal)
        else explained(value, translate, label)
        if isinstance(value, Reasons)
        else value
        for name, value in finding.params.items()
    }
    return ": ".join((*map(label, finding.path), by_package(finding.msgid, **params)))


#: The smallest number that has separators in some language.
_GROUPED_FROM = 1000


class _Numbers(Formatter):
    """Formats integers by the rules of a language, for the format specifications in `specs`: `12,500` in
    English, `12 500` in Russian, with a no-break space."""

    def __init__(self, lang: str, *specs: str) -> None:
        self._locale = _locale_of(lang) or "en"
        self._specs = specs

    def format_field(self, value: Any, format_spec: str) -> Any:
        if format_spec not in self._specs or not isinstance(value, int):
            return super().format_field(value, format_spec)
        from babel.numbers import format_decimal  # noqa: PLC0415 - its data takes megabytes, which few need

        return format_decimal(value, locale=self._locale)


def package_of(function: Callable[..., Any]) -> str:
    """The package whose texts a function uses: its own."""
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
        if not values:
            return found
        if ":,}" in found:
            return _Numbers(self._lang, ",").format(found, **values)
        return found.format(**values)

    def ngettext(self, one: str, many: str, count: int, /) -> str:
        found = self._catalogue.ngettext(one, many, count)
        if count < _GROUPED_FROM:
            return found.format(count=count)
        return _Numbers(self._lang, "", ",").format(found, count=count)

    def pgettext(self, context: str, text: str, /) -> str:
        found = self._catalogue.pgettext(context, text)
        return self(text) if found == text else found
