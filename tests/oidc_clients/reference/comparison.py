"""Differences between two recordings, and those that have a reason."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

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
    found: list[Difference], reasons: Mapping[tuple[str, str], str]
) -> tuple[list[Difference], list[tuple[str, str]]]:
    """The differences without a reason, and the reasons that explain nothing any more. A reason is by the
    case, which may have `*` in it, and the fact."""
    used = set()
    open_ = []
    for difference in found:
        by = [
            key
            for key in reasons
            if fnmatchcase(difference.case, key[0]) and fnmatchcase(difference.fact, key[1])
        ]
        used.update(by)
        if not by:
            open_.append(difference)
    return open_, [key for key in reasons if key not in used]


def table(found: list[Difference], reasons: Mapping[tuple[str, str], str]) -> str:
    """The differences as a table in Markdown."""
    rows = ["| case | fact | reference | msgsvc | why |", "| --- | --- | --- | --- | --- |"]
    for each in found:
        why = next(
            (
                reason
                for key, reason in reasons.items()
                if fnmatchcase(each.case, key[0]) and fnmatchcase(each.fact, key[1])
            ),
            "",
        )
        cells = (each.case, each.fact, each.reference, each.ours, why)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _text(fact: Any) -> str:
    return " ".join(map(str, fact)) if isinstance(fact, list) else str(fact)
