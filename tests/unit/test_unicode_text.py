"""Texts of strangers: normalized within a bound, and stored whatever characters they have."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from msgsvc_auth.sites import readable_site
from msgsvc_core.kernel import email
from msgsvc_core.kernel.storable_text import storable
from msgsvc_core.kernel.unicode_text import MAX_NORMALIZED, normalized
from msgsvc_core.subscribers.searching import MOST, folded
from msgsvc_dashboard.accounts.passwords import normal
from msgsvc_devkit.growth import growing
from msgsvc_oidc.protocol.device import read_user_code

ROOT = Path(__file__).parents[2]

#: Two marks that are sorted, and letters that are composed and decomposed.
MARKS = ["\u0301\u0323", "\u0323", "\ufdfa", "\u1100\u1161\u11a8", "a\u0301", " "]

OWNER = "msgsvc_core/kernel/unicode_text.py"


def test_a_text_beyond_the_bound_is_not_normalized() -> None:
    assert normalized("NFC", "e\u0301") == "é"
    assert normalized("NFKC", "a" * MAX_NORMALIZED) == "a" * MAX_NORMALIZED
    assert normalized("NFKC", "a" * (MAX_NORMALIZED + 1)) is None
    assert normalized("NFKC", "ab", most=1) is None


@pytest.mark.parametrize(
    "read", [folded, normal, read_user_code, lambda text: email.normalized(text + "@a.example")]
)
def test_names_passwords_codes_and_addresses_take_linear_time(
    read: Callable[[str], object],
) -> None:
    assert growing(read, MARKS, before="a") == []


def test_a_site_takes_linear_time() -> None:
    assert growing(readable_site, ["\u0430", "a.", "xn--a."], before="https://") == []


def test_only_one_module_normalizes() -> None:
    found = [
        str(path.relative_to(ROOT))
        for folder in ("msgsvc_core", "plugins", "contrib", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if "normalize" in (text := path.read_text("utf-8"))
        and any(
            isinstance(node, ast.Attribute | ast.ImportFrom) and _normalizes(node)
            for node in ast.walk(ast.parse(text))
        )
    ]

    assert found == [OWNER]


def _normalizes(node: ast.Attribute | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "unicodedata" and any(a.name == "normalize" for a in node.names)
    value = node.value
    return node.attr == "normalize" and isinstance(value, ast.Name) and value.id == "unicodedata"


def test_a_search_term_is_what_it_was_for_texts_of_any_length() -> None:
    assert folded(" Ｊörg\u2003 Lee ") == "jörg lee"
    assert folded("@ann") == "ann"
    assert folded("a" * 100_000) == "a" * MOST
    assert folded(" " * 10_000 + "ann") == "ann"


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("Hello", "Hello"),
        ("a\0b", "a\ufffdb"),
        ("caf\udce9", "caf\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("Grüße", "Grüße"),
    ],
)
def test_any_text_can_be_stored(text: str, stored: str) -> None:
    assert storable(text) == stored
    assert storable(text).encode()
