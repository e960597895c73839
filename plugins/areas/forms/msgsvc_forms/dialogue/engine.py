"""The transition function of a conversation: state and event to new state and outcomes."""

from collections.abc import Callable
from dataclasses import replace

from msgsvc_forms.answers import Value
from msgsvc_forms.dialogue.events import CommandSent, Edited, Event, FileLost, Opened, Pressed, Said
from msgsvc_forms.dialogue.outcomes import (
    Ended,
    Notice,
    Outcome,
    Prompt,
    Redraw,
    Remark,
    Restart,
    Say,
    Submit,
)
from msgsvc_forms.dialogue.reading import (
    Refused,
    place_of,
    read_files,
    read_place,
    read_text,
    read_value,
)
from msgsvc_forms.dialogue.script import Script
from msgsvc_forms.dialogue.state import Given, State, move_to, path_of, submitted

#: Refused answers to a question after which the bot offers alternatives.
MOST_TRIES = 3

Step = tuple[State, list[Outcome]]


def step(script: Script, state: State, event: Event) -> Step:
    """The state after `event`, and what the bot does, in order. Never fails, for any event.

    A conversation that is `paused` ignores `Said`: such messages are not meant for it.
    """
    match event:
        case Said():
            return _on_text(script, state, event)
        case Edited():
            return _on_edit(script, state, event)
        case CommandSent(name):
            return _on_command(script, state, name)
        case Pressed():
            return _on_press(script, state, event)
        case Opened(slug):
            if state.offer != slug:
                state = replace(state, turn=state.turn + 1)
            return replace(state, phase="offered", offer=slug), [Prompt()]
        case FileLost():
            return _on_file_lost(script, state, event)


def _on_text(script: Script, state: State, event: Said) -> Step:
    # Answering continues the form, whatever else was asked.
    state = replace(state, phase="open", offer=None)
    if state.at is None:
        return _at_summary(script, state, event.text)
    try:
        if event.files:
            return _on_files(script, state, event)
        value = read_text(script, state.at, event.text)
    except Refused as refused:
        return _refuse(state, refused.remark, event.ref)
    return _accept(script, state, value, event.ref)


def _on_files(script: Script, state: State, event: Said) -> Step:
    """Files, which may come in several messages where the question takes several."""
    assert state.at is not None
    if event.problem is not None and script[state.at].type == "file":
        raise Refused(Remark("file_failed", state.at, {"why": event.problem}))
    values = read_files(script, state.at, event.files)
    limit = script[state.at].max_files
    if limit == 1:
        return _accept(script, state, values, event.ref)
    files = [*state.draft, *values]
    values = read_value(script, state.at, files)
    if len(files) == limit:
        return _accept(script, state, values, event.ref)
    return replace(state, draft=tuple(files), tries=0), [Prompt()]


def _at_summary(script: Script, state: State, text: str) -> Step:
    """A number leads to the answer with that number."""
    keys = list(submitted(script, state))
    number = text.strip().rstrip(".)")
    if number.isascii() and number.isdecimal() and 1 <= int(number[:6]) <= len(keys):
        return move_to(script, state, keys[int(number[:6]) - 1]), [Prompt()]
    return state, [Prompt((Remark("at_summary"),))]


def _accept(script: Script, state: State, value: Value, ref: str | None) -> Step:
    """The answer to what is asked now; on to the first open question, or the end."""
    assert state.at is not None
    answers = {**state.answers, state.at: Given(value, ref)}
    state = replace(state, answers=answers, skipped=state.skipped - {state.at})
    return _advance(script, state)


def _advance(script: Script, state: State) -> Step:
    state = move_to(script, state, path_of(script, state).open)
    if state.at is None and script.is_single:
        # Nothing to look over: the only answer is still on the screen.
        return state, [Submit(submitted(script, state))]
    return state, [Prompt()]


def _refuse(state: State, remark: Remark, ref: str | None) -> Step:
    state = replace(state, tries=state.tries + 1, refused_ref=ref)
    return state, [Prompt((remark,))]


def _on_file_lost(script: Script, state: State, lost: FileLost) -> Step:
    """A file that was taken for an answer could not be had: the question is open again."""
    answers: dict[str, Given] = {}
    for key, given in state.answers.items():
        kept = _without(given.value, lost.file_id)
        if kept or not isinstance(given.value, list):
            answers[key] = Given(kept, given.ref)
    changed = replace(state, answers=answers, draft=tuple(_without([*state.draft], lost.file_id)))
    if changed == state:
        return state, []
    way = path_of(script, changed)
    if changed.at in way.keys or (changed.at is None and way.open is None):
        changed = replace(changed, turn=state.turn + 1)
    else:
        changed = move_to(script, changed, way.open)
    if state.phase == "paused":
        return replace(changed, phase="paused"), []
    return changed, [Prompt((Remark("file_failed", values={"why": lost.why}),))]


def _without(value: Value, file_id: str) -> Value:
    if not isinstance(value, list):
        return value
    return [one for one in value if not isinstance(one, dict) or one["file_id"] != file_id]


def _on_edit(script: Script, state: State, edited: Edited) -> Step:
    asked = state.answers.get(state.at) if state.at is not None else None
    is_answer = edited.ref == state.refused_ref or (asked is not None and asked.ref == edited.ref)
    if state.at is not None and state.phase != "paused" and is_answer:
        # Corrected before anything else was sent, or while reviewing: treated as a regular answer.
        return _on_text(script, state, Said(edited.text, edited.ref))
    by_ref = {given.ref: key for key, given in state.answers.items()}
    key = by_ref.get(edited.ref, "")
    if key not in script or script[key].type == "file":
        # What stands beside a file is not the answer.
        return state, []
    try:
        value = read_text(script, key, edited.text)
    except Refused as refused:
        return state, [Say(Remark("edit_refused", key)), Say(refused.remark)]
    if value == state.answers[key].value:
        return state, []
    return _correct(script, state, key, value, edited.ref)


def _correct(script: Script, state: State, key: str, value: Value, ref: str) -> Step:
    """Another answer may lead another way: then the question changes with it."""
    state = replace(state, answers={**state.answers, key: Given(value, ref)})
    changed = Remark("edit_taken", key)
    if key in state.skipped:
        return state, [Say(changed)]
    way = path_of(script, state)
    stays = state.at in way.keys or (state.at is None and way.open is None)
    if state.phase == "paused":
        if not stays:
            state = replace(move_to(script, state, way.open), phase="paused")
        return state, [Say(changed)]
    if stays and state.at is not None:
        return state, [Say(changed)]
    return move_to(script, state, state.at if stays else way.open), [Prompt((changed,))]


# ---- commands and buttons -------------------------------------------------------------------------


def _on_command(script: Script, state: State, name: str) -> Step:
    if state.phase == "paused" and name not in {"go", "cancel", "anew"}:
        return state, []
    action = _ACTIONS.get(name)
    # Not an answer, and no failed try: the question is asked again.
    return action(script, state) if action else (state, [Prompt((Remark("unknown_command"),))])


def _on_press(script: Script, state: State, press: Pressed) -> Step:
    if press.turn == state.turn:
        if press.action in _ACTIONS:
            return _ACTIONS[press.action](script, state)
        try:
            if state.at is not None:
                return _chosen(script, state, state.at, press)
        except Refused as refused:
            return _refuse(replace(state, phase="open", offer=None), refused.remark, None)
        except LookupError:
            pass
    return state, [Notice(Remark("old_button"))]


def _chosen(script: Script, state: State, key: str, press: Pressed) -> Step:
    if press.action == "page":
        return state, [Redraw(place_of(press.argument))]
    if press.action == "pick":
        value = read_place(script, key, press.argument)
        return _accept(script, replace(state, phase="open", offer=None), value, None)
    return _toggled(script, state, press)


def _toggled(script: Script, state: State, press: Pressed) -> Step:
    """A button says what it brings about, not "the other": so a second press changes nothing."""
    assert state.at is not None
    if script[state.at].type != "multichoice" or press.action not in {"put", "drop"}:
        raise LookupError
    place, _, page = press.argument.partition(".")
    options = [value for value, _ in script.options(state.at)]
    value = options[place_of(place)]
    chosen = {*state.draft, value} if press.action == "put" else {*state.draft} - {value}
    draft = tuple(option for option in options if option in chosen)
    return replace(state, draft=draft), [Redraw(place_of(page))]


def _back(script: Script, state: State) -> Step:
    way = path_of(script, state)
    to = way.before(state.at)
    if to is None:
        return state, [Prompt((Remark("at_start"),))]
    return move_to(script, state, to), [Prompt()]


def _skip(script: Script, state: State) -> Step:
    if state.at is None:
        return state, [Prompt((Remark("at_summary"),))]
    if script[state.at].required:
        return state, [Prompt((Remark("required"),))]
    return _advance(script, replace(state, skipped=state.skipped | {state.at}))


def _keep_answer(script: Script, state: State) -> Step:
    """Leaves an answer that was looked at again as it is."""
    if state.at is None or state.at not in state.answers or state.at in state.skipped:
        return state, [Prompt()]
    return _advance(script, state)


def _done(script: Script, state: State) -> Step:
    if state.at is None or not takes_several(script, state.at):
        return state, [Prompt()]
    try:
        value = read_value(script, state.at, list(state.draft))
    except Refused as refused:
        return _refuse(replace(state, phase="open", offer=None), refused.remark, None)
    return _accept(script, state, value, None)


def takes_several(script: Script, key: str) -> bool:
    """Whether an answer has several parts, and ends with Done."""
    field = script[key]
    return field.type == "multichoice" or (field.type == "file" and field.max_files > 1)


def _send(script: Script, state: State) -> Step:
    if state.at is not None:
        return state, [Prompt((Remark("not_ready"),))]
    return state, [Submit(submitted(script, state))]


def _change_answers(script: Script, state: State) -> Step:
    return replace(state, tries=0, turn=state.turn + 1), [Prompt()]


def _later(script: Script, state: State) -> Step:
    return replace(state, phase="paused", tries=0, turn=state.turn + 1), [Prompt()]


def _exit(script: Script, state: State) -> Step:
    return replace(state, phase="open", offer=None, tries=0, turn=state.turn + 1), [Prompt()]


def _cancel(script: Script, state: State) -> Step:
    """Asked twice where something would be lost."""
    if not state.answers or state.phase == "leaving":
        return state, [Ended()]
    return replace(state, phase="leaving", turn=state.turn + 1), [Prompt()]


def _restart(script: Script, state: State) -> Step:
    if state.phase != "offered" or state.offer is None:
        return state, [Prompt()]
    return state, [Restart(state.offer)]


_ACTIONS: dict[str, Callable[[Script, State], Step]] = {
    "back": _back,
    "skip": _skip,
    "keep": _keep_answer,
    "done": _done,
    "send": _send,
    "again": _change_answers,
    "later": _later,
    "go": _exit,
    "cancel": _cancel,
    "anew": _restart,
}
