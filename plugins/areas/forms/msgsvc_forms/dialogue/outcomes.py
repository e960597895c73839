"""Outcomes of an event in a conversation; `wording` renders them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgsvc_forms.answers import Answers, WrongAnswer


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to say, by its name, with the values that belong into it; `key` is of a question.

    One called `wrong` says of the question why it does not take an answer.
    """

    name: str
    key: str | None = None
    values: Mapping[str, object] = field(default_factory=dict)
    wrong: WrongAnswer | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """Asks what the state is at: a question, the summary, or whether to go on. After the remarks."""

    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class Redraw:
    """Brings the message of the pressed button up to date; `page` is that of its options."""

    page: int = 0


@dataclass(frozen=True, slots=True)
class Notice:
    """A short word to the one who pressed a button."""

    remark: Remark


@dataclass(frozen=True, slots=True)
class Say:
    """A message that asks nothing."""

    remark: Remark


@dataclass(frozen=True, slots=True)
class Submit:
    """The form is to be submitted: answers in the order in which they were asked."""

    answers: Answers


@dataclass(frozen=True, slots=True)
class Ended:
    """The person gave the form up."""


@dataclass(frozen=True, slots=True)
class Restart:
    """This conversation ends, and one for the form `slug` starts."""

    slug: str


Outcome = Prompt | Redraw | Notice | Say | Submit | Ended | Restart
