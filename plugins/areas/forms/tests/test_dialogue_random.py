"""Whatever people do, in whatever order: a conversation keeps to a small model of what must hold."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from msgsvc_core.channels import Button, OutgoingMessage
from msgsvc_core.content.markup import utf16_length
from msgsvc_core.kernel.i18n import Texts
from msgsvc_forms.definition import Definition
from msgsvc_forms.dialogue import (
    CommandSent,
    Edited,
    Ended,
    Event,
    GivenFile,
    Notice,
    Opened,
    Outcome,
    Pressed,
    Prompt,
    Redraw,
    Restart,
    Said,
    Say,
    Script,
    State,
    Submit,
    initial_state,
    step,
)
from msgsvc_forms.dialogue.engine import MOST_TRIES, takes_several
from msgsvc_forms.dialogue.wording import Wording
from msgsvc_forms.question_flow import path

from .scripts import NONSENSE, definitions, good_answers

TRANSLATE = Texts([], "en").into("en")
COMMANDS = (
    "back",
    "skip",
    "cancel",
    "keep",
    "done",
    "send",
    "again",
    "later",
    "go",
    "anew",
    "stop",
)


@dataclass
class Talk:
    """A conversation, and what the model knows of it: the answers that were taken, by key."""

    definition: Definition
    state: State
    lang: str = "en"
    taken: dict[str, Any] = field(default_factory=dict)
    shown: list[Button] = field(default_factory=list)
    sent: dict[str, Any] | None = None
    over: bool = False
    refs: int = 0

    @property
    def script(self) -> Script:
        return Script(self.definition, self.lang)

    def do(self, event: Event) -> None:
        before = self.state
        self.state, outcomes = step(self.script, before, event)
        # As it is after a restart.
        kept = json.loads(json.dumps(self.state.to_json()))
        assert State.from_json(kept) == self.state
        self.state = State.from_json(kept)
        for outcome in outcomes:
            self.look_at(outcome)
        if isinstance(event, Pressed) and event.turn != before.turn:
            assert (self.state, [type(one) for one in outcomes]) == (before, [Notice])

    def look_at(self, outcome: Outcome) -> None:
        wording = Wording(self.script, self.state, TRANSLATE, self.data)
        match outcome:
            case Prompt(remarks):
                self.read(wording.prompt(remarks, offered="Another"))
                plain = replace(wording, buttons_shown=False).prompt(remarks, offered="Another")
                assert (plain.buttons, "\n/" in plain.text) == ((), True)
                assert utf16_length(plain.text) <= 4000
            case Redraw(page):
                self.read(wording.prompt(page=page))
            case Notice(remark) | Say(remark):
                assert wording.remark_text(remark)
            case Submit(answers):
                self.sent, self.over = dict(answers), True
            case Ended() | Restart():
                self.over = True

    def data(self, action: str, argument: str) -> str:
        return f"{self.state.turn}:{action}:{argument}"

    def read(self, message: OutgoingMessage) -> None:
        """Every question leads on, and fits every messenger."""
        self.shown += [button for row in message.buttons for button in row]
        assert 1 <= len(message.buttons) <= 3
        assert all(1 <= len(row) <= 3 for row in message.buttons)
        assert message.text.strip()
        assert utf16_length(message.text) <= 4000
        assert all(0 < utf16_length(button.text) <= 64 for row in message.buttons for button in row)
        assert message.format == "plain"


def answer(talk: Talk, draw: Any) -> None:
    """An answer that the question takes, by a message or a button."""
    key = talk.state.at
    assert key is not None
    question = talk.definition.field(key)
    assert question is not None
    talk.refs += 1
    if question.type == "file":
        file = GivenFile(f"fil_{talk.refs}", "image", "<a>.png")
        already = list(talk.state.draft)
        talk.do(Said("", f"m{talk.refs}", (file,)))
        if not takes_several(talk.script, key) or len(already) + 1 == question.max_files:
            talk.taken[key] = [*already, file.to_value()]
    elif question.type in {"choice", "rating"} and draw(st.booleans()):
        options = talk.script.options(key)
        at = draw(st.integers(0, len(options) - 1))
        talk.do(Pressed(talk.state.turn, "pick", str(at)))
        value = options[at][0]
        talk.taken[key] = int(value) if question.type == "rating" else value
    else:
        text, value = draw(st.sampled_from(good_answers(question)))
        talk.do(Said(text, f"m{talk.refs}"))
        talk.taken[key] = value


def act(talk: Talk, draw: Any) -> None:
    """Anything that a person, or a platform, may do."""
    state, before = talk.state, dict(talk.taken)
    asked = talk.definition.field(state.at) if state.at is not None else None
    match draw(st.sampled_from("aaaaaaanbbbcceeoodtl")):
        case "a" if asked is not None and state.phase != "paused":
            answer(talk, draw)
        case "n" if state.phase != "paused" and (asked is None or asked.type != "text"):
            talk.do(Said(draw(st.sampled_from([*NONSENSE, "1234567"][:-1])), "nonsense"))
            assert talk.state.at is not None or not talk.over
        case "b" if talk.shown:
            button = draw(st.sampled_from(talk.shown[-9:] * 3 + talk.shown))
            press(talk, button.data or "")
        case "c":
            order(talk, draw(st.sampled_from(COMMANDS)))
        case "e" if before:
            edit(talk, draw)
        case "o":
            talk.do(Opened(draw(st.sampled_from(["form", "other"]))))
        case "d":
            turn = draw(st.integers(0, state.turn + 1))
            word = draw(st.sampled_from(["pick", "put", "drop", "page", "x", "done", "send"]))
            press(
                talk,
                f"{turn}:{word}:{draw(st.sampled_from(['', '0', '1', '0.0', '99', '٣', '-1']))}",
            )
        case "l":
            talk.lang = draw(st.sampled_from(["en", "ru"]))


def press(talk: Talk, data: str) -> None:
    """What a button does, in the model: by its word."""
    turn, word, argument = data.split(":")
    state = talk.state
    if int(turn) == state.turn and state.at is not None:
        _foresee(talk, state.at, word, argument)
    talk.do(Pressed(int(turn), word, argument))


def order(talk: Talk, name: str) -> None:
    if name == "done" and talk.state.phase != "paused" and talk.state.at is not None:
        _foresee(talk, talk.state.at, name, "")
    talk.do(CommandSent(name))


def _foresee(talk: Talk, key: str, word: str, argument: str) -> None:
    question = talk.definition.field(key)
    assert question is not None
    options = [value for value, _ in talk.script.options(key)]
    place = int(argument) if argument.isascii() and argument.isdecimal() else len(options) + 2
    if (
        word == "pick"
        and question.type == "consent"
        and (place == 1 or (place == 0 and not question.required))
    ):
        talk.taken[key] = place == 1
    elif word == "pick" and question.type in {"choice", "rating"} and place < len(options):
        talk.taken[key] = int(options[place]) if question.type == "rating" else options[place]
    elif word == "done" and takes_several(talk.script, key) and talk.state.draft:
        least, most = (2, 2) if question.min is not None else (1, 50)
        if question.type == "file" or least <= len(talk.state.draft) <= most:
            talk.taken[key] = list(talk.state.draft)


def edit(talk: Talk, draw: Any) -> None:
    """A message of long ago, or the last one, is changed; to nonsense, or to another answer."""
    state = talk.state
    given = {key: one.ref for key, one in state.answers.items() if one.ref}
    if not given:
        return
    key = draw(st.sampled_from(sorted(given)))
    question = talk.definition.field(key)
    assert question is not None
    if question.type == "file":
        # What stands beside a file is not the answer.
        return
    text, value = draw(st.sampled_from([*good_answers(question), ("", None)]))
    talk.do(Edited(text, given[key] or ""))
    if value is not None:
        talk.taken[key] = value


def finish(talk: Talk, draw: Any) -> None:
    """Somebody who only answers comes to the end, wherever the conversation stood."""
    for _ in range(4 * len(talk.definition.fields) + 4):
        if talk.over:
            return
        if talk.state.phase != "open":
            talk.do(CommandSent("go"))
        elif talk.state.at is None:
            talk.do(CommandSent("send"))
        elif takes_several(talk.script, talk.state.at) and talk.state.draft and draw(st.booleans()):
            order(talk, "done")
        else:
            answer(talk, draw)
    raise AssertionError(f"no way to the end from {talk.state}")


@settings(max_examples=150, deadline=None, derandomize=True)
@given(definition=definitions(), data=st.data())
def test_random_conversations_keep_to_the_model(
    definition: Definition, data: st.DataObject
) -> None:
    talk = Talk(definition, initial_state(Script(definition, "en")))
    talk.look_at(Prompt())
    for _ in range(data.draw(st.integers(0, 40))):
        if talk.over:
            break
        act(talk, data.draw)
        kept = {key: one.value for key, one in talk.state.answers.items()}
        # No answer is lost, and none is made up.
        assert kept == talk.taken
        assert (talk.state.tries < MOST_TRIES) or talk.shown
    finish(talk, data.draw)

    if talk.sent is not None:
        answers = {key: value for key, value in talk.taken.items() if key not in talk.state.skipped}
        asked = path(definition, answers)
        assert list(talk.sent.items()) == [
            (one.key, answers[one.key]) for one in asked if one.key in answers
        ]
        assert all(one.key in answers for one in asked if one.required)
