"""Selects the next question: pure functions of a form's definition and the answers so far."""

from typing import Any

from msgsvc_forms.answers import Answers
from msgsvc_forms.definition import Condition, Definition, ToNextField, comparable
from msgsvc_forms.fields import FormField


def condition_holds(definition: Definition, when: Condition | None, answers: Answers) -> bool:
    """Whether a condition holds for these answers; a missing condition always does.

    A missing answer matches `ne` and `exists: false`, and nothing else.
    """
    if when is None:
        return True
    field = definition.field(when.field)
    answer = answers.get(when.field)
    if when.op == "exists":
        return (answer is not None) == (when.value is not False)
    if field is None or answer is None:
        return when.op == "ne"
    return _compared(field, when, answer)


def _compared(field: FormField, when: Condition, answer: Any) -> bool:
    if when.op == "contains":
        if isinstance(answer, list):
            return comparable(field, when.value)[0] in answer
        return str(when.value).casefold() in str(answer).casefold()
    wanted = comparable(field, when.value)
    if field.type in {"text", "email"}:
        # People don't mind how they write what they mean.
        answer, wanted = str(answer).casefold(), str(wanted).casefold()
    match when.op:
        case "eq":
            return bool(answer == wanted)
        case "ne":
            return bool(answer != wanted)
        case "gt":
            return bool(answer > wanted)
        case _:
            return bool(answer < wanted)


def next_field(
    definition: Definition, answers: Answers, after: str | None = None
) -> FormField | None:
    """The question after `after`, or the first one; None at the end.

    The first rule after it to a next field, whose condition holds, decides; else it is the next in order.
    Rules only lead forward, so every path through a form ends.
    """
    if after is None:
        return definition.fields[0]
    for rule in definition.rules:
        if not isinstance(rule.to, ToNextField) or rule.after != after:
            continue
        if condition_holds(definition, rule.when, answers):
            return None if rule.to.field is None else definition.field(rule.to.field)
    following = definition.position(after) + 1
    return definition.fields[following] if following < len(definition.fields) else None


def path(definition: Definition, answers: Answers) -> list[FormField]:
    """The questions asked with these answers, in order."""
    asked: list[FormField] = []
    field = next_field(definition, answers)
    while field is not None:
        asked.append(field)
        field = next_field(definition, answers, field.key)
    return asked


def always_asked(definition: Definition) -> set[str]:
    """The keys of questions that no rule skips, whatever the answers."""
    passed: set[str] = set()
    keys = [field.key for field in definition.fields]
    for rule in definition.rules:
        if isinstance(rule.to, ToNextField) and rule.after is not None:
            end = len(keys) if rule.to.field is None else definition.position(rule.to.field)
            passed.update(keys[definition.position(rule.after) + 1 : end])
    return set(keys) - passed
