"""Variants in the form of a broadcast: the fields of the first are those of any message, the others have a
prefix."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_broadcasts.models import CreateBroadcastBody
from msgsvc_broadcasts.variants import MAX_VARIANTS, BroadcastExperimentBody
from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, PostedForm
from msgsvc_core.dashboard.writing import MessageForm
from msgsvc_core.mailings import Mailing, MailingMessage
from msgsvc_core.mailings.models import MessageSource

#: The prefixes of the fields of each variant, by place.
PREFIXES = ("", "b_", "c_", "d_")
assert len(PREFIXES) == MAX_VARIANTS, "each variant has its fields"

#: What may be chosen as the time until clicks decide, in seconds.
WAITS_S = (900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 259200, 604800)

_CONTENT = set(MessageSource.model_fields)


def count_of(form: PostedForm) -> int:
    """How many variants the form has, and 1 for one message; one more or less after a press of its button."""
    found = form.number("variants")
    count = found if isinstance(found, int) else 1
    count += {"add": 1, "remove": -1}.get(form.text("change_variants"), 0)
    return max(1, min(MAX_VARIANTS, count))


def offered(form: PostedForm) -> list[tuple[str, str]]:
    """The prefix and name of each variant of the form, with the default names in place of empty ones."""
    return [
        (prefix, form.text(f"{prefix}variant_name").strip() or chr(ord("A") + place))
        for place, prefix in enumerate(PREFIXES[: count_of(form)])
    ]


def written(form: PostedForm) -> list[MessageForm]:
    """The message of each variant; of one message, itself."""
    return [MessageForm(form, prefix) for prefix, _ in offered(form)]


def messages_of(form: PostedForm) -> list[dict[str, Any]]:
    """Likewise, as bodies, unvalidated."""
    return [each.message() for each in written(form)]


def message_for_test(page: PageContext) -> MailingMessage:
    """The variant that is chosen for a test. Raises `ValidationFailed`."""
    chosen = page.form.text("test_variant")
    messages = messages_of(page.form)
    prefixes = [prefix for prefix, _ in offered(page.form)]
    place = prefixes.index(chosen) if chosen in prefixes else 0
    return validate(MailingMessage, messages[place], languages=page.languages)


def body_of(form: PostedForm) -> dict[str, Any]:
    """The fields of a body that the message needs, or its variants; unvalidated."""
    variants = offered(form)
    if len(variants) == 1:
        return MessageForm(form).message()
    experiment: dict[str, Any] = {"winner": form.text("winner", "clicks")}
    for name in ("share_percent", "after_seconds"):
        if form.text(name).strip():
            experiment[name] = form.number(name)
    return {
        **MessageForm(form).options(),
        "variants": [
            {**MessageForm(form, prefix).source(), "name": name} for prefix, name in variants
        ],
        "experiment": experiment,
    }


def values_of(mailing: Mailing) -> Mapping[str, Sequence[str]]:
    """The values of a form with the variants of a broadcast, for a copy; none for one message."""
    if mailing.experiment is None:
        return {}
    values: dict[str, Sequence[str]] = {"variants": [str(len(mailing.variants))]}
    for number, (prefix, variant) in enumerate(zip(PREFIXES, mailing.variants, strict=False)):
        message = mailing.to_message(number)
        content = {name: each for name, each in message.items() if name in _CONTENT}
        filled = MessageForm.values_of(content)
        values |= {f"{prefix}{name}": texts for name, texts in filled.items()}
        values[f"{prefix}variant_name"] = [variant["name"]]
    terms = mailing.experiment["terms"]
    return {
        **values,
        "share_percent": [str(mailing.experiment["share_percent"])],
        "winner": [terms["winner"]],
        "after_seconds": [str(terms["after_s"])],
    }


def experiment_of(body: CreateBroadcastBody) -> BroadcastExperimentBody | None:
    """How the variants of a body are tried; None for one message."""
    return None if body.variants is None else body.experiment or BroadcastExperimentBody()
