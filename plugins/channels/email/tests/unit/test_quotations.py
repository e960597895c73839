"""What is left of replies as mail programs write them."""

import tomllib
from pathlib import Path

import pytest

from msgsvc_devkit.growth import growing
from msgsvc_email.mail_text import text_of_html, written_in

MAILS = tomllib.loads((Path(__file__).parents[1] / "mails" / "quotations.toml").read_text("utf-8"))
PLAIN, HTML, WHOLE = MAILS["plain"], MAILS["html"], MAILS["whole"]

WRITTEN = "It is number 7.\n\nWhen will it come?"


@pytest.mark.parametrize("program", PLAIN)
def test_of_a_reply_what_its_author_wrote_is_left(program: str) -> None:
    assert _lines(written_in(PLAIN[program].replace("{written}", WRITTEN))) == _lines(WRITTEN)


@pytest.mark.parametrize("program", HTML)
def test_of_a_reply_in_html_what_its_author_wrote_is_left(program: str) -> None:
    written = WRITTEN.replace("\n\n", "<br><br>")

    assert _lines(written_in(text_of_html(HTML[program].replace("{written}", written)))) == _lines(
        WRITTEN
    )


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_no_quotation_stays(name: str) -> None:
    assert written_in(WHOLE[name]) == WHOLE[name]


UNITS = [
    "From: a\n",
    "From: a\nTo: b\nSubject: c\n",
    "\n",
    "On 27.11.2026 10:00\n",
    "On 1 wrote:\n",
    ":\n",
]
UNITS += [
    "wrote:  a\n",
    "a@b.example ",
    "<a@b.example>:\n",
    "-----Original Message-----\n",
    "wrote ",
    "> a\n",
]
UNITS += [
    "________________________________\n",
    "27.11.2026, ",
    "On 1 ",
    "*From: ",
    "a" * 399 + ":\n",
    "\u200f:\n",
]
UNITS += [" ", "\xa0", "- ", "1.", "1 ", "--", "2026年", ":  a", "\t:\n"]


def test_quotations_are_found_in_linear_time() -> None:
    assert growing(written_in, UNITS) == []
    assert growing(written_in, UNITS, before="Hello\n") == []
    assert growing(written_in, UNITS, before="Hello\n", after="\n> quoted") == []


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
