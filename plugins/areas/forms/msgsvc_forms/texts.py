"""Texts of rejected answers, for pages and messengers."""

from collections.abc import Callable

from msgsvc_core.kernel.i18n import Translate
from msgsvc_forms.answers import Why, WrongAnswer
from msgsvc_forms.fields import FormField


def explain(_: Translate, field: FormField, wrong: WrongAnswer) -> str:
    """A sentence about what the field accepts."""
    values = {
        name: value if isinstance(value, int | float | str) else value.isoformat()
        for name, value in wrong.values.items()
    }
    if wrong.why == "required":
        return _required(_, field)
    return _SENTENCES[wrong.why](_, values)


def _required(_: Translate, field: FormField) -> str:
    if field.type == "consent":
        return _("We can't continue without your consent.")
    if field.type in {"choice", "multichoice", "rating"}:
        return _("Please choose.")
    if field.type == "file":
        return _("Please add a file.")
    return _("Please fill this in.")


_Values = dict[str, object]

_SENTENCES: dict[Why, Callable[[Translate, _Values], str]] = {
    "not_text": lambda _, __: _("Please write a text."),
    "too_short": lambda _, v: _("Please write at least {least} characters.", **v),
    "too_long": lambda _, v: _("Please write at most {most} characters.", **v),
    "not_as_asked": lambda _, __: _("This is not in the expected format."),
    "not_number": lambda _, __: _("Please enter a number, e.g. 12 or 3.5."),
    "too_small": lambda _, v: _("Please enter a number of at least {least}.", **v),
    "too_large": lambda _, v: _("Please enter a number of at most {most}.", **v),
    "not_email": lambda _, __: _("Please enter an email address, e.g. name@example.com."),
    "not_phone": lambda _, __: _("Please enter a phone number with its country code."),
    "not_date": lambda _, __: _("Please enter a date, e.g. 2026-12-31 or 31.12.2026."),
    "too_early": lambda _, v: _("Please enter a date not before {least}.", **v),
    "too_late": lambda _, v: _("Please enter a date not after {most}.", **v),
    "not_choice": lambda _, __: _("Please choose one of the options."),
    "too_few": lambda _, v: _("Please choose at least {least}.", **v),
    "too_many": lambda _, v: _("That is too many: at most {most}.", **v),
    "not_rating": lambda _, v: _("Please choose a number from 1 to {most}.", **v),
    "not_consent": lambda _, __: _("Please answer Yes or No."),
    "bad_file": lambda _, __: _(
        "This file was not accepted: it is empty, too large, or does not match its extension."
    ),
    "not_file": lambda _, __: _("Please send a picture, a video or a document."),
}
