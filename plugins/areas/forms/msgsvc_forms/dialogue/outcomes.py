"""Outcomes of an event in a conversation; `wording` renders them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgsvc_forms.answers import Answers, WrongAnswer


@dataclass(frozen=True, slots=True)
class Remark:
    """A text for the user, by its name, with its values; `key` is that of a question.

    `wrong` is the reason why the question does not accept an answer.
    """

    name: str
    key: str | None = None
    values: Mapping[str, object] = field(default_factory=dict)
    wrong: WrongAnswer | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """Asks the current question, or shows the summary, or asks whether to continue. After the remarks."""

    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class Redraw:
    """Updates the message of the pressed button; `page` is that of its options."""

    page: int = 0


@dataclass(frozen=True, slots=True)
class Notice:
    """A short notice for the user who pressed a button."""

    remark: Remark


@dataclass(frozen=True, slots=True)
class Say:
    """A message without a question."""

    remark: Remark


@dataclass(frozen=True, slots=True)
class Submit:
    """The form is to be submitted: answers in the order in which they were asked."""

    answers: Answers


@dataclass(frozen=True, slots=True)
class Ended:
    """The user cancelled the form."""


@dataclass(frozen=True, slots=True)
class Restart:
    """This conversation ends, and one for the form `slug` starts."""

    slug: str


Outcome = Prompt | Redraw | Notice | Say | Submit | Ended | Restart
