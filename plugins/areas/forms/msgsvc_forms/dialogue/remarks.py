"""Texts of remarks: why an answer was rejected, and other notices."""

from collections.abc import Callable, Mapping

from msgsvc_core.kernel.i18n import Translate
from msgsvc_forms.dialogue.outcomes import Remark
from msgsvc_forms.dialogue.script import Script
from msgsvc_forms.texts import explain

Values = Mapping[str, object]


def say(_: Translate, script: Script, remark: Remark, label: str) -> str:
    """`label` is that of the question, or the form's title."""
    if remark.wrong is not None and remark.key is not None:
        return explain(_, script[remark.key], remark.wrong)
    return plainly(_, remark, label)


def plainly(_: Translate, remark: Remark, label: str = "") -> str:
    """The text of a remark that needs no form."""
    return _SAYINGS[remark.name](_, {**remark.values, "label": label})


_SAYINGS: dict[str, Callable[[Translate, Values], str]] = {
    "required": lambda _, v: _("This question can't be skipped."),
    "no_file_here": lambda _, v: _(
        "A file can't be used as an answer here. Please write your answer."
    ),
    "file_failed": lambda _, v: _("Your file was not accepted: {why}", why=v["why"]),
    "at_start": lambda _, v: _("This is the first question."),
    "not_ready": lambda _, v: _("Some questions are not answered yet."),
    "at_summary": lambda _, v: _("All questions are answered. Please review your answers."),
    "unknown_command": lambda _, v: _("Unknown command. Your answers are saved."),
    "old_button": lambda _, v: _("This button was for an earlier question."),
    "edit_taken": lambda _, v: _("Your answer to “{label}” was changed.", label=v["label"]),
    "edit_refused": lambda _, v: _(
        "Your answer to “{label}” is unchanged: the new one is not valid.",
        label=v["label"],
    ),
    "edit_too_late": lambda _, v: _("The form is already sent. Answers can no longer be changed."),
    "ended": lambda _, v: _("The form was cancelled and your answers were deleted."),
    "submitted": lambda _, v: _("Thank you! Your answers were sent."),
    "not_now": lambda _, v: _(
        "The form can't be sent at the moment. Your answers are saved; please try later."
    ),
    "aside": lambda _, v: _("Back to “{label}”:", **v),
    "not_open": lambda _, v: _("This form is no longer in progress."),
}
