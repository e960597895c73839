"""Buttons of a question: at most three rows of three, as for every message of a project.

The last row holds navigation, so two are left for options: up to six, or five a page with a button to the
next. All options can also be typed, by label or number.
"""

from collections.abc import Sequence

from msgsvc_core.channels import Button
from msgsvc_core.kernel.visible_text import one_line

#: Options without paging, and per page, whose last place leads to the next page.
MOST_AT_ONCE, A_PAGE, A_ROW = 6, 5, 3

#: Characters of a label that a phone shows on one of so many buttons in a row.
_FITTING = {1: 36, 2: 18, 3: 11}

#: An option: its label, what its button does, and whether it is chosen.
Choosable = tuple[str, str, bool]


def columns(count: int) -> int:
    """The number of options in each of the two rows."""
    return min(A_ROW, max(1, (count + 1) // 2))


def fit(labels: Sequence[str]) -> bool:
    """Whether buttons can show the labels; otherwise the text lists them by number."""
    limit = _FITTING[columns(len(labels))]
    return len(labels) <= MOST_AT_ONCE and all(len(one_line(label)) <= limit for label in labels)


def page_of(number: int, count: int) -> int:
    """The number of an existing page, from 0: the last is followed by the first."""
    return number % max(1, -(-count // A_PAGE)) if count > MOST_AT_ONCE else 0


def option_rows(
    options: Sequence[Choosable], page: int, turn_to: str
) -> tuple[tuple[Button, ...], ...]:
    """`turn_to` is the action of the button for the next page."""
    labels = [label for label, _, _ in options]
    named = fit(labels)
    buttons = [
        Button(_mark(one_line(label) if named else str(place + 1), chosen), data=data)
        for place, (label, data, chosen) in enumerate(options)
    ]
    if len(buttons) > MOST_AT_ONCE:
        buttons = [*buttons[page * A_PAGE : (page + 1) * A_PAGE], Button("…", data=turn_to)]
    return rows_of(buttons, columns(len(buttons)))


def rows_of(buttons: Sequence[Button], width: int) -> tuple[tuple[Button, ...], ...]:
    return tuple(tuple(buttons[at : at + width]) for at in range(0, len(buttons), width))


def _mark(label: str, chosen: bool) -> str:
    return f"✓ {label}" if chosen else label
