"""Texts of remarks: why an answer was refused, and other notices."""

from collections.abc import Callable, Mapping

from msgsvc_core.kernel.i18n import Translate
from msgsvc_forms.dialogue.outcomes import Remark
from msgsvc_forms.dialogue.script import Script
from msgsvc_forms.texts import explain

Values = Mapping[str, object]


def say(_: Translate, script: Script, remark: Remark, label: str) -> str:
    """`label` is that of the question that the remark is about, or the form's title."""
    if remark.wrong is not None and remark.key is not None:
        return explain(_, script[remark.key], remark.wrong)
    return plainly(_, remark, label)


def plainly(_: Translate, remark: Remark, label: str = "") -> str:
    """The same of a remark for which no form is needed."""
    return _SAYINGS[remark.name](_, {**remark.values, "label": label})


_SAYINGS: dict[str, Callable[[Translate, Values], str]] = {
    "required": lambda _, v: _("This question can't be skipped."),
    "no_file_here": lambda _, v: _("A file can't be the answer here. Please write it."),
    "file_failed": lambda _, v: _("Your file could not be taken: {why}", why=v["why"]),
    "at_start": lambda _, v: _("This is the first question."),
    "not_ready": lambda _, v: _("Some questions are still open."),
    "at_summary": lambda _, v: _("All questions are answered. Please look them over."),
    "unknown_command": lambda _, v: _("I don't know this command. Your answers are kept."),
    "old_button": lambda _, v: _("This button was for an earlier question."),
    "edit_taken": lambda _, v: _("Your answer to “{label}” was changed.", label=v["label"]),
    "edit_refused": lambda _, v: _(
        "Your answer to “{label}” stays as it was: what you changed it to can't be taken.",
        label=v["label"],
    ),
    "edit_too_late": lambda _, v: _(
        "The form is sent already. An answer can't be changed any more."
    ),
    "ended": lambda _, v: _("The form was cancelled, and your answers deleted."),
    "submitted": lambda _, v: _("Thank you! Your answers were sent."),
    "not_now": lambda _, v: _(
        "The form can't be sent at the moment. Your answers are kept; please try later."
    ),
    "aside": lambda _, v: _("Back to “{label}”:", **v),
    "not_open": lambda _, v: _("This form is not being filled in any more."),
}
