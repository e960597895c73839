"""Everything that a person reads in a messenger is there in English and Russian."""

import re
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from msgsvc_core.texts import Texts

ROOT = Path(__file__).parents[2]
OWNERS = sorted(
    path.parents[3] for path in ROOT.glob("*/locale/ru/LC_MESSAGES/messages.po")
) + sorted(path.parents[3] for path in ROOT.glob("plugins/*/*/*/locale/ru/LC_MESSAGES/messages.po"))
PO = Path("locale/ru/LC_MESSAGES/messages.po")


def translations(owner: Path) -> dict[str, str]:
    with (owner / PO).open("rb") as file:
        return {str(entry.id): str(entry.string) for entry in read_po(file) if entry.id}


@pytest.mark.parametrize("owner", OWNERS, ids=lambda path: path.name)
def test_every_text_in_the_code_has_its_russian(owner: Path) -> None:
    found = extract_from_dir(str(owner), method_map=[("**.py", "python")], keywords={"_": None})
    texts = {str(message) for _, _, message, _, _ in found}

    assert texts <= set(translations(owner))


@pytest.mark.parametrize("owner", OWNERS, ids=lambda path: path.name)
def test_a_translation_keeps_the_places_for_values(owner: Path) -> None:
    for english, russian in translations(owner).items():
        assert russian
        assert set(re.findall(r"{(\w+)}", english)) == set(re.findall(r"{(\w+)}", russian))


@pytest.mark.parametrize(
    ("platform", "ours"),
    [("ru", "ru"), ("ru-RU", "ru"), ("ru_RU", "ru"), ("EN-us", "en"), ("de", "en"), (None, "en")],
)
def test_a_platforms_language_becomes_one_of_ours(platform: str | None, ours: str) -> None:
    assert Texts([], "en").choose(platform) == ours


def test_a_text_without_translation_is_shown_in_english() -> None:
    _ = Texts([ROOT / "msgsvc_core" / "locale"], "en").into("ru")

    assert _("Nobody translated {this}.", this="it") == "Nobody translated it."


def test_values_are_put_into_the_translation() -> None:
    _ = Texts([ROOT / "msgsvc_core" / "locale"], "en").into("ru")

    text = _("You are subscribed to notifications from {project}.", project="{Shop}")

    assert text == "Вы подписаны на уведомления от «{Shop}»."
