"""Reading a message's markup takes time that grows with its length, whoever wrote it."""

import random
import time

import pytest

from msgsvc_core.content.html_markup import from_html
from msgsvc_core.content.markdown import from_markdown
from msgsvc_core.content.outgoing import Format

SIGNS = {
    "markdown": [*"*_`[a \\\n", "**", "__", "~~", "```", "](", ")"],
    "html": [*"<'\">/ a&", "<a ", "<b>", "</b>", "x=", '="', "<!--", "<![if ", "</"],
}

#: What took seconds, or would take them in a reader that looks for each end anew.
HOSTILE = {
    "markdown": ("*a ", "**a ", "_a ", "[a ", "`~~(", "[```)", "\\a*b "),
    "html": ("<a ", "<a", "<a b='", "<!--", "<b>x", "<i></b>", '<a b=">"c ', "<a/x="),
}


def _seconds(text: str, text_format: Format) -> float:
    read = from_html if text_format == "html" else from_markdown
    best = float("inf")
    for _ in range(2):
        began = time.process_time()
        list(read(text))
        best = min(best, time.process_time() - began)
    return best


@pytest.mark.parametrize("text_format", ["markdown", "html"])
def test_four_times_the_text_takes_about_four_times_as_long(text_format: Format) -> None:
    chance = random.Random(20261124)
    units = [*HOSTILE[text_format]]
    units += [
        "".join(chance.choices(SIGNS[text_format], k=chance.randint(2, 6))) for _ in range(20)
    ]
    slow = []
    for unit in units:
        for before in ("", "\\"):
            short, long = ((before + unit * 8000)[:length] for length in (2000, 8000))
            # Quadratic time is sixteen times as much; what is over in a moment can't be measured, and
            # a machine that is busy is asked again.
            if all(_growth(short, long, text_format) > 8 for _ in range(3)):
                slow.append(before + unit)

    assert slow == []


def _growth(short: str, long: str, text_format: Format) -> float:
    return _seconds(long, text_format) / max(_seconds(short, text_format), 0.001)
