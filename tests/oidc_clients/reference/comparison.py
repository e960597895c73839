"""Differences between two recordings, and those that have a reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.oidc_clients.reference.reasons import Reason
from tests.oidc_clients.reference.recording import Recording

#: A fact that is not there.
ABSENT = "-"


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """A fact of a case that two providers answer differently."""

    case: str
    fact: str
    reference: str
    ours: str


def differences(reference: Recording, ours: Recording) -> list[Difference]:
    """What is different, by case and fact. A case that only one of them has differs in all its facts."""
    found = []
    for case in dict.fromkeys([*reference, *ours]):
        there, here = reference.get(case, {}), ours.get(case, {})
        for fact in dict.fromkeys([*there, *here]):
            pair = (there.get(fact, ABSENT), here.get(fact, ABSENT))
            if pair[0] != pair[1]:
                found.append(Difference(case, fact, *map(_text, pair)))
    return found


def unexplained(
    found: list[Difference], reasons: Sequence[Reason]
) -> tuple[list[Difference], list[tuple[str, str]]]:
    """The differences without a reason, and the cases and facts of reasons that explain nothing any more."""
    why = _by_fact(reasons)
    places = {(each.case, each.fact) for each in found}
    open_ = [each for each in found if (each.case, each.fact) not in why]
    return open_, [place for place in why if place not in places]


def table(found: list[Difference], reasons: Sequence[Reason]) -> str:
    """The differences as a table in Markdown."""
    why = _by_fact(reasons)
    rows = ["| case | fact | reference | msgsvc | why |", "| --- | --- | --- | --- | --- |"]
    for each in found:
        reason = why.get((each.case, each.fact), "")
        cells = (each.case, each.fact, each.reference, each.ours, reason)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _by_fact(reasons: Sequence[Reason]) -> dict[tuple[str, str], str]:
    """Why, by case and fact, each of which has one reason."""
    found: dict[tuple[str, str], str] = {}
    for reason in reasons:
        for case in reason.cases:
            for fact in reason.facts:
                assert (case, fact) not in found, (case, fact)
                found[case, fact] = reason.why
    return found


def _text(fact: Any) -> str:
    return " ".join(map(str, fact)) if isinstance(fact, list) else str(fact)
