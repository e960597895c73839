"""Everything that a person reads in a messenger is there in English and Russian."""

import ast
import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po

from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.kernel.i18n import Texts

ROOT = Path(__file__).parents[2]
OWNERS = sorted(
    path.parents[3] for path in ROOT.glob("*/locale/ru/LC_MESSAGES/messages.po")
) + sorted(path.parents[3] for path in ROOT.glob("plugins/*/*/*/locale/ru/LC_MESSAGES/messages.po"))
PO = Path("locale/ru/LC_MESSAGES/messages.po")


MINUTES = """
msgid "{count} minute ago"
msgid_plural "{count} minutes ago"
msgstr[0] "{count} минуту назад"
msgstr[1] "{count} минуты назад"
msgstr[2] "{count} минут назад"
"""


def translations(owner: Path) -> dict[str, str]:
    with (owner / PO).open("rb") as file:
        return {str(entry.id): str(entry.string) for entry in read_po(file) if entry.id}


#: In templates: `_("...")`, `_('...')`, and the singular of `_.ngettext("...", "...", n)`.
IN_TEMPLATES = re.compile(r"""\b_(?:\.ngettext)?\(\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")

#: Code without this translates nothing. Splitting all modules into tokens takes seconds.
SAYS = re.compile(r"\b(?:_|ngettext)\s*\(")

#: `_.pgettext("...", "...")`, in templates and in code.
IN_CONTEXT = re.compile(r"""_\.pgettext\(\s*(["'])(.+?)\1,\s*(["'])(.+?)\3\)""")

CORE_TEXTS = ("msgsvc_core", ROOT / "msgsvc_core" / "locale")


def used_texts(owner: Path) -> set[str]:
    """The texts in the code and the templates of a package; of plurals, the form for one."""
    keywords: dict[str, tuple[int, ...] | None] = {"_": None, "ngettext": (1, 2)}
    speaking = (path for path in owner.rglob("*.py") if SAYS.search(path.read_text("utf-8")))
    found = (each for path in speaking for each in extract_from_file("python", path, keywords))
    texts = {message if isinstance(message, str) else message[0] for _, message, _, _ in found}
    for template in owner.rglob("templates/**/*.html"):
        for double, single in IN_TEMPLATES.findall(template.read_text(encoding="utf-8")):
            texts.add((double or single).replace('\\"', '"'))
    return texts


def known_texts(owner: Path) -> set[str]:
    with (owner / PO).open("rb") as file:
        return {
            entry.id if isinstance(entry.id, str) else entry.id[0]
            for entry in read_po(file)
            if entry.id and entry.string
        }


@pytest.mark.parametrize("owner", OWNERS, ids=lambda path: path.name)
def test_every_text_in_code_and_templates_has_its_russian(owner: Path) -> None:
    """Its own, or the core's: it never speaks with the texts of another plugin."""
    known = known_texts(owner) | known_texts(ROOT / "msgsvc_core")

    assert sorted(used_texts(owner) - known) == []


@pytest.mark.parametrize("owner", OWNERS, ids=lambda path: path.name)
def test_a_text_stands_once_in_a_catalogue_and_has_its_contexts(owner: Path) -> None:
    lines = (owner / PO).read_text("utf-8").splitlines()
    known = [
        (before if before.startswith("msgctxt ") else "", line)
        for before, line in pairwise(["", *lines])
        if line.startswith("msgid ")
    ]
    files = [*owner.rglob("templates/**/*.html"), *owner.rglob("*.py")]
    used = {
        (f'msgctxt "{context}"', f'msgid "{text}"')
        for file in files
        for _, context, _, text in IN_CONTEXT.findall(file.read_text("utf-8"))
    }

    assert sorted(key for key, count in Counter(known).items() if count > 1) == []
    assert {key for key in known if key[0]} == used


def quoted_texts(owner: Path) -> tuple[set[str], str]:
    """The strings in the code of a package, and its templates and scripts. Not all are in a call of `_`: the
    title of a page is translated where it is shown."""
    strings = {
        node.value
        for file in owner.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    pages = [file.read_text("utf-8") for file in sorted(owner.rglob("*.[hj][ts]*"))]
    return strings, "\n".join(pages)


def is_used(text: str, quoted: Iterable[tuple[set[str], str]]) -> bool:
    escaped = text.replace('"', '\\"')
    return any(
        text in strings or f'"{escaped}"' in pages or f"'{text}'" in pages
        for strings, pages in quoted
    )


def test_a_catalogue_has_no_text_that_nobody_says() -> None:
    """The core's texts may be those of any package."""
    quoted = {owner: quoted_texts(owner) for owner in OWNERS}
    of_all = [*quoted.values()]
    unused = {
        (owner.name, text)
        for owner in OWNERS
        for text in known_texts(owner)
        if not is_used(text, of_all if owner.name == "msgsvc_core" else [quoted[owner]])
    }

    assert sorted(unused) == []


def a_catalogue(folder: Path, russian: str) -> Path:
    path = folder / "ru/LC_MESSAGES/messages.po"
    path.parent.mkdir(parents=True)
    path.write_text(f'msgid "Open"\nmsgstr "{russian}"\n', encoding="utf-8")
    return folder


def test_the_same_english_has_the_russian_of_who_says_it(tmp_path: Path) -> None:
    folders = [
        ("verbs", a_catalogue(tmp_path / "verbs", "Открыть")),
        ("states", a_catalogue(tmp_path / "states", "Открытые")),
    ]
    for texts in (Texts(folders, "en"), Texts(reversed(folders), "en")):
        said = [texts.into("ru", name)("Open") for name in ("verbs.pages", "states", "msgsvc_core")]

        assert said == ["Открыть", "Открытые", "Open"]
        assert texts.into("ru", "verbs")["states.words"]("Open") == "Открытые"


def test_a_context_has_its_own_translation_and_else_that_of_the_text(tmp_path: Path) -> None:
    folder = a_catalogue(tmp_path, "Открыть")
    (po,) = folder.rglob("*.po")
    added = 'msgctxt "state"\nmsgid "Open"\nmsgstr "Открыто"\n'
    po.write_text(f"{po.read_text('utf-8')}\n{added}", encoding="utf-8")
    _ = Texts([CORE_TEXTS, ("verbs", folder)], "en").into("ru", "verbs")

    assert (_("Open"), _.pgettext("state", "Open")) == ("Открыть", "Открыто")
    assert (_.pgettext("place", "Open"), _.pgettext("place", "Shut")) == ("Открыть", "Shut")


def test_a_package_without_texts_speaks_with_those_of_the_core(tmp_path: Path) -> None:
    _ = Texts([CORE_TEXTS, ("verbs", a_catalogue(tmp_path, "Открыть"))], "en").into("ru", "other.x")

    assert (_("Cancel"), _("Open")) == ("Отмена", "Open")


@pytest.mark.parametrize("owner", OWNERS, ids=lambda path: path.name)
def test_a_translation_keeps_the_places_for_values(owner: Path) -> None:
    for english, russian in translations(owner).items():
        assert russian
        assert set(re.findall(r"{(\w+)", english)) == set(re.findall(r"{(\w+)", russian))


@pytest.mark.parametrize(
    ("platform", "ours"),
    [("ru", "ru"), ("ru-RU", "ru"), ("ru_RU", "ru"), ("EN-us", "en"), ("de", "en"), (None, "en")],
)
def test_a_platforms_language_becomes_one_of_ours(platform: str | None, ours: str) -> None:
    assert Texts([], "en").choose(platform) == ours


def test_a_text_without_translation_is_shown_in_english() -> None:
    _ = Texts([CORE_TEXTS], "en").into("ru")

    assert _("Nobody translated {this}.", this="it") == "Nobody translated it."


def test_values_are_put_into_the_translation() -> None:
    _ = Texts([CORE_TEXTS], "en").into("ru")

    text = _("You are subscribed to notifications from {project}.", project="{Shop}")

    assert text == "Вы подписаны на уведомления от «{Shop}»."


@pytest.mark.parametrize(
    ("lang", "count", "text"),
    [
        ("en", 1, "1 minute ago"),
        ("en", 21, "21 minutes ago"),
        ("ru", 1, "1 минуту назад"),
        ("ru", 3, "3 минуты назад"),
        ("ru", 11, "11 минут назад"),
        ("ru", 21, "21 минуту назад"),
    ],
)
def test_a_number_has_the_form_of_its_language(
    tmp_path: Path, lang: str, count: int, text: str
) -> None:
    path = tmp_path / "ru/LC_MESSAGES/messages.po"
    path.parent.mkdir(parents=True)
    path.write_text(MINUTES, encoding="utf-8")
    _ = Texts([CORE_TEXTS, ("counted", tmp_path)], "en").into(lang, "counted")

    assert _.ngettext("{count} minute ago", "{count} minutes ago", count) == text


@pytest.mark.parametrize(
    ("lang", "count", "text"),
    [
        ("en", 999, "999 minutes ago, at most 12,500"),
        ("en", 1000, "1,000 minutes ago, at most 12,500"),
        ("ru", 12500, "12\xa0500 минут назад, at most 12\xa0500"),
    ],
)
def test_digits_are_grouped_as_in_the_readers_language(
    tmp_path: Path, lang: str, count: int, text: str
) -> None:
    path = tmp_path / "ru/LC_MESSAGES/messages.po"
    path.parent.mkdir(parents=True)
    path.write_text(MINUTES, encoding="utf-8")
    _ = Texts([CORE_TEXTS, ("counted", tmp_path)], "en").into(lang, "counted")

    ago = _.ngettext("{count} minute ago", "{count} minutes ago", count)
    most = _("at most {most:,}", most=12500)

    assert f"{ago}, {most}" == text


def test_a_number_without_a_specification_stays_as_it_is() -> None:
    _ = Texts([CORE_TEXTS], "en").into("ru")

    assert _("Nobody translated #{number}, {name:>5}.", number=12500, name="a") == (
        "Nobody translated #12500,     a."
    )


def own_catalogue(folder: Path, lang: str, package: str, *lines: str) -> None:
    """A deployer's translations of a package."""
    path = folder / lang / "LC_MESSAGES" / f"{package}.po"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")


LISTED = ("en", "ru", "de")


@pytest.mark.parametrize(("default", "said"), [("en", "Leave"), ("ru", "Выйти")])
def test_a_language_that_nobody_brings_is_the_default_one(
    tmp_path: Path, default: str, said: str
) -> None:
    own_catalogue(tmp_path, "ru", "msgsvc_core", 'msgid "Leave"', 'msgstr "Выйти"')
    texts = Texts([CORE_TEXTS], default, LISTED, tmp_path)

    assert texts.into("de")("Leave") == said
    assert texts.into("en")("Leave") == "Leave"
    assert texts.spoken == ("en", "ru")


def test_texts_of_ones_own_go_before_and_the_default_language_fills_their_gaps(
    tmp_path: Path,
) -> None:
    own_catalogue(
        tmp_path, "de", "verbs", 'msgid "Open"', 'msgstr "Öffnen"', "", 'msgid "Gone"', 'msgstr ""'
    )
    own_catalogue(tmp_path, "ru", "verbs", 'msgid "Open"', 'msgstr "Отпереть"')
    folders = [CORE_TEXTS, ("verbs", a_catalogue(tmp_path / "plugin", "Открыть"))]
    texts = Texts(folders, "ru", LISTED, tmp_path)

    assert texts.into("de", "verbs.page")("Open") == "Öffnen"
    assert texts.into("ru", "verbs.page")("Open") == "Отпереть"
    assert texts.into("de", "other.page")("Open") == "Open"
    assert texts.into("de", "verbs.page")("Gone") == "Gone"
    assert texts.spoken == ("en", "ru")


def test_a_plugin_brings_texts_in_a_language_that_is_listed_alone(tmp_path: Path) -> None:
    path = tmp_path / "de" / "LC_MESSAGES" / "messages.po"
    path.parent.mkdir(parents=True)
    path.write_text('msgid "Open"\nmsgstr "Öffnen"\n', encoding="utf-8")
    folders = [CORE_TEXTS, ("verbs", tmp_path)]

    assert Texts(folders, "en", LISTED).into("de", "verbs")("Open") == "Öffnen"
    assert Texts(folders, "en").into("de", "verbs")("Open") == "Open"


@pytest.mark.parametrize("translation", ["{nmae} ist da", "{name ist da", "{} ist da", "{0} da"])
def test_a_translation_with_other_braces_than_its_text_is_refused_at_the_start(
    tmp_path: Path, translation: str
) -> None:
    own_catalogue(
        tmp_path, "de", "msgsvc_core", 'msgid "{name} is here"', f'msgstr "{translation}"'
    )

    with pytest.raises(SettingsError, match=r"locale_dir: .*msgsvc_core\.po: .*other braces"):
        Texts([CORE_TEXTS], "en", LISTED, tmp_path)


def test_plural_forms_follow_the_language(tmp_path: Path) -> None:
    own_catalogue(
        tmp_path,
        "de",
        "msgsvc_core",
        'msgid "{count} stone"',
        'msgid_plural "{count} stones"',
        'msgstr[0] "{count} Stein"',
        'msgstr[1] "{count} Steine"',
    )
    _ = Texts([CORE_TEXTS], "ru", LISTED, tmp_path).into("de")

    assert [_.ngettext("{count} stone", "{count} stones", count) for count in (1, 2)] == [
        "1 Stein",
        "2 Steine",
    ]
