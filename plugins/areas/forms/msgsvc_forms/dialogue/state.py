"""The state of a conversation, stored as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from msgsvc_forms.answers import Value
from msgsvc_forms.dialogue.script import Script

#: `leaving`: asked whether to cancel the form. `offered`: asked whether to restart. `paused`: what the
#: person writes is not an answer.
Phase = Literal["open", "leaving", "offered", "paused"]


@dataclass(frozen=True, slots=True)
class Given:
    """An answer, and its message, if there was one."""

    value: Value
    ref: str | None = None


@dataclass(frozen=True, slots=True)
class State:
    """`at` is the current question, None at the summary.

    `turn` increments with every question, so that a button press can be assigned to its question. `tries`
    counts rejected answers to `at`, `refused_ref` is the message of the last one. `draft` has the options or
    files selected so far. Answers that are not on the current path are kept, but not submitted.
    """

    at: str | None
    turn: int = 1
    phase: Phase = "open"
    tries: int = 0
    answers: Mapping[str, Given] = field(default_factory=dict)
    skipped: frozenset[str] = frozenset()
    draft: tuple[Value, ...] = ()
    refused_ref: str | None = None
    offer: str | None = None

    def knows(self, ref: str) -> bool:
        """Whether a message was an answer, or was meant to be the one that is asked for."""
        return ref == self.refused_ref or any(given.ref == ref for given in self.answers.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "at": self.at,
            "turn": self.turn,
            "phase": self.phase,
            "tries": self.tries,
            "answers": {key: [given.value, given.ref] for key, given in self.answers.items()},
            "skipped": sorted(self.skipped),
            "draft": list(self.draft),
            "refused_ref": self.refused_ref,
            "offer": self.offer,
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "State":
        return cls(
            at=kept["at"],
            turn=kept["turn"],
            phase=kept["phase"],
            tries=kept["tries"],
            answers={key: Given(value, ref) for key, (value, ref) in kept["answers"].items()},
            skipped=frozenset(kept["skipped"]),
            draft=tuple(kept["draft"]),
            refused_ref=kept["refused_ref"],
            offer=kept["offer"],
        )


@dataclass(frozen=True, slots=True)
class AnswerPath:
    """The questions on the current path through the form, and the first open one."""

    keys: tuple[str, ...]
    open: str | None

    def before(self, key: str | None) -> str | None:
        """The question before `key`, or the last one of all before the summary."""
        if key is None:
            return self.keys[-1]
        place = self.keys.index(key) if key in self.keys else 0
        return self.keys[place - 1] if place > 0 else None


def path_of(script: Script, state: State) -> AnswerPath:
    """The path according to the answers, up to the first question that is neither answered nor skipped."""
    keys: list[str] = []
    answers: dict[str, Value] = {}
    key: str | None = script.first
    while key is not None:
        keys.append(key)
        if key in state.answers and key not in state.skipped:
            answers[key] = state.answers[key].value
        elif key not in state.skipped:
            return AnswerPath(tuple(keys), key)
        key = script.after(key, answers)
    return AnswerPath(tuple(keys), None)


def submitted(script: Script, state: State) -> dict[str, Value]:
    """The answers on the path, in order."""
    return {
        key: state.answers[key].value
        for key in path_of(script, state).keys
        if key in state.answers and key not in state.skipped
    }


def initial_state(script: Script, turn: int = 1) -> State:
    """Before the first answer."""
    return State(at=script.first, turn=turn)


def move_to(script: Script, state: State, to: str | None) -> State:
    """Moves to another question, or the summary, and resets everything else of the turn."""
    given = state.answers.get(to) if to is not None and to not in state.skipped else None
    chosen = given.value if given and isinstance(given.value, list) else []
    return replace(
        state,
        at=to,
        turn=state.turn + 1,
        phase="open",
        tries=0,
        draft=tuple(chosen) if to is not None and script[to].type == "multichoice" else (),
        refused_ref=None,
        offer=None,
    )
