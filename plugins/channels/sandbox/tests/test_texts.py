"""Every sentence of the pages has its Russian."""

import re
from pathlib import Path

from babel.messages.pofile import read_po

import msgsvc_sandbox
from msgsvc_sandbox.routes import router

PACKAGE = Path(msgsvc_sandbox.__file__).parent

_TEXT = re.compile(r"""\b_\((?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")


def test_every_text_is_translated_and_no_translation_is_left_over() -> None:
    used = {
        match[1] or match[2]
        for template in (PACKAGE / "templates").glob("*.html")
        for match in _TEXT.finditer(template.read_text(encoding="utf-8"))
    }
    # The dashboard describes the scopes of keys in the reader's language.
    used.add(router.description)
    with (PACKAGE / "locale/ru/LC_MESSAGES/messages.po").open("rb") as file:
        catalogue = {str(entry.id): str(entry.string) for entry in read_po(file) if entry.id}

    assert set(catalogue) == used
    assert all(catalogue.values())


def test_placeholders_are_the_same_in_both_languages() -> None:
    with (PACKAGE / "locale/ru/LC_MESSAGES/messages.po").open("rb") as file:
        for entry in read_po(file):
            names = [set(re.findall(r"{(\w+)}", str(text))) for text in (entry.id, entry.string)]
            assert names[0] == names[1], entry.id


def test_scripts_hold_no_sentences_of_their_own() -> None:
    words = (PACKAGE / "templates/shapes.html").read_text(encoding="utf-8")
    declared = {
        re.sub(r"-(\w)", lambda match: match[1].upper(), name)
        for name in re.findall(r"data-([a-z-]+)=", words)
    }
    for script in (PACKAGE / "static").glob("*.js"):
        named = set(re.findall(r'\bword\("(\w+)"', script.read_text(encoding="utf-8")))
        assert named <= declared, script.name
