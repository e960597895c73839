"""The definition of a form's version: its fields and rules."""

import json
import re
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.api.types import HttpUrl, NamedByExternalId, NamedById, NamedOnChannel
from msgsvc_core.api.validation import wrong_field
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.i18n import Localized, visible
from msgsvc_core.kernel.json import to_json
from msgsvc_core.plugins.tickets import Priority
from msgsvc_core.security.http_urls import WrongUrl, check_http_url
from msgsvc_core.subscribers.models import TagName
from msgsvc_forms.answers import WrongAnswer, read_answer
from msgsvc_forms.fields import FieldKey, FormField

Op = Literal["eq", "ne", "contains", "gt", "lt", "exists"]

#: The name of `rules` in stored definitions.
STORED_RULES = "routes"

#: Fields of one form.
MOST_FIELDS = 50

_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:[0-9]{1,5})?")

#: Which types of field an operator is for.
_TYPES_OF: dict[str, frozenset[str]] = {
    "eq": frozenset({"text", "number", "email", "phone", "date", "choice", "rating", "consent"}),
    "contains": frozenset({"text", "email", "phone", "multichoice"}),
    "gt": frozenset({"number", "date", "rating"}),
}
_TYPES_OF |= {"ne": _TYPES_OF["eq"], "lt": _TYPES_OF["gt"]}


#: Maximum characters of an origin: a host name has at most 253.
MOST_ORIGIN = 255


def _check_origin(origin: str) -> str:
    if origin != "*" and not (len(origin) <= MOST_ORIGIN and _ORIGIN.fullmatch(origin)):
        raise WrongUrl('must be an origin as https://shop.example, in small letters, or "*"')
    return origin


Origin = Annotated[
    str,
    AfterValidator(_check_origin),
    Field(
        json_schema_extra={"format": "uri", "maxLength": MOST_ORIGIN},
        examples=[examples.SITE_URL],
    ),
]

#: What these fields of a form mean, in bodies and responses alike.
TITLE = "Heading of the form: one text for all, or texts by language."
DESCRIPTION = "Text below the heading, in one or several languages; null for none."
THANKS = "Text after submitting, in one or several languages; null for the service's own."
FIELDS = "The 1-50 questions, in their order."
RULES = "Where submissions go, each on its own; at most 40."
ALLOWED_ORIGINS = 'Origins of the sites whose pages may submit it; `"*"` allows all.'
REDIRECT_URL = (
    "Where a browser goes after submitting an HTML form; null for the service's page of thanks."
)
MIN_FILL_SECONDS = (
    "Seconds between loading and submitting the form at least; what comes faster is spam. 0 disables the"
    " check."
)

#: The form of examples: a call back.
EXAMPLE_FIELDS: list[JsonValue] = [
    {"key": "phone", "type": "phone", "label": "Your number", "required": True},
    {
        "key": "time",
        "type": "choice",
        "label": "When may we call?",
        "options": ["morning", "evening"],
    },
]
EXAMPLE_RULES: list[JsonValue] = [{"to": {"kind": "ticket", "priority": "high"}}]


class Condition(RequestModel):
    """A condition on an answer."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"field": "time", "op": "eq", "value": "morning"},
                {"field": "email", "op": "exists"},
            ]
        }
    )

    field: str = Field(description="Key of the field whose answer is compared.", examples=["time"])
    op: Op = Field(
        description="`contains` is for texts and for one of several choices; `gt` and `lt` for numbers,"
        " dates and ratings; `exists` for whether there is an answer; `eq` and `ne` for all but files and"
        " several choices."
    )
    value: str | int | float | bool | None = Field(
        None,
        description="What the answer is compared with, of the field's type. With `exists`: true (or left"
        " out), or false.",
        examples=["morning"],
    )


#: The text above the answers, in a rule to people.
TextAbove = Annotated[
    Annotated[Localized, visible(1000)] | None,
    Field(
        description="Text above the answers, one or by language; by default the form's title.",
        examples=["A new order"],
    ),
]


class ToSubscriber(RequestModel):
    """A message with the answers to one subscriber: `subscriber_id` or `external_id`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"kind": "subscriber", "subscriber_id": examples.SUBSCRIBER_ID}]
        }
    )

    kind: Literal["subscriber"] = Field(description="To one person.")
    subscriber_id: NamedById = None
    external_id: NamedByExternalId = None
    channel: NamedOnChannel = None
    text: TextAbove = None

    @model_validator(mode="after")
    def _one(self) -> "ToSubscriber":
        """Either `subscriber_id` or `external_id` is given."""
        if (self.subscriber_id is None) == (self.external_id is None):
            raise InvalidValue("give either subscriber_id or external_id")
        return self


class ToTag(RequestModel):
    """A message with the answers to all subscribers with the tag."""

    kind: Literal["tag"] = Field(description="To everybody with a tag.")
    tag: TagName = Field(description="The tag, which the project must have.", examples=["sales"])
    text: TextAbove = None


class ToTicket(RequestModel):
    """A ticket with the answers."""

    kind: Literal["ticket"] = Field(description="To the agents, as a ticket.")
    subject: Annotated[Localized, visible(200)] | None = Field(
        None,
        description="Subject of the ticket, one or by language; by default the form's title.",
        examples=["Call back"],
    )
    priority: Priority = Field("normal", description="Priority of the ticket.")
    tags: list[TagName] = Field(
        default_factory=list,
        max_length=20,
        description="Tags of the ticket.",
        examples=[["callback"]],
    )


class ToWebhook(RequestModel):
    """Only the event `form.submitted`, which every submission emits."""

    kind: Literal["webhook"] = Field(description="To nobody except your webhooks.")


class ToNextField(RequestModel):
    """In the messenger, which question comes after `after`."""

    kind: Literal["next_field"] = Field(description="To another question, in the messenger.")
    after: str | None = Field(
        None,
        description="Key of the question after which it is evaluated; by default that of `when`.",
        examples=["email"],
    )
    field: str | None = Field(
        None,
        description="Key of a later question that comes next; left out, there are no more questions.",
        examples=["time"],
    )


_TARGETS: dict[str, type[RequestModel]] = {
    "subscriber": ToSubscriber,
    "tag": ToTag,
    "ticket": ToTicket,
    "webhook": ToWebhook,
    "next_field": ToNextField,
}


def _by_kind(value: Any, _validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """The target of that kind. Pydantic's own way would put the kind into the paths of fields."""
    if isinstance(value, RequestModel):
        return value
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _TARGETS:
        raise wrong_field("kind", "must be one of {choices}", choices=", ".join(_TARGETS))
    return _TARGETS[kind].model_validate(value, context=info.context)


Target = Annotated[
    ToSubscriber | ToTag | ToTicket | ToWebhook | ToNextField,
    Field(discriminator="kind"),
    WrapValidator(_by_kind),
]


class Rule(RequestModel):
    """Where a submission goes, if `when` holds or is left out."""

    model_config = ConfigDict(
        title="FormRule",
        json_schema_extra={
            "examples": [
                {
                    "when": {"field": "time", "op": "eq", "value": "morning"},
                    "to": {"kind": "ticket", "priority": "high"},
                }
            ]
        },
    )

    when: Condition | None = Field(
        None, description="Which submissions it is for; left out, for all."
    )
    to: Target = Field(description="Where they go, by `kind`.")

    @property
    def after(self) -> str | None:
        """Of a rule to the next field: the question after which it is looked at."""
        if not isinstance(self.to, ToNextField):
            return None
        return self.to.after or (self.when.field if self.when is not None else None)


class Definition(RequestModel):
    """A version of a form."""

    title: Annotated[Localized, visible(200)] = Field(description=TITLE, examples=["Call me back"])
    description: Annotated[Localized, visible(2000)] | None = Field(
        None, description=DESCRIPTION, examples=["We call within a working day."]
    )
    thanks: Annotated[Localized, visible(1000)] | None = Field(
        None, description=THANKS, examples=["Thank you! We will call soon."]
    )
    fields: list[FormField] = Field(min_length=1, max_length=MOST_FIELDS, description=FIELDS)
    rules: list[Rule] = Field(default_factory=list, description=RULES)
    allowed_origins: list[Origin] = Field(
        default_factory=list, max_length=50, description=ALLOWED_ORIGINS
    )
    redirect_url: HttpUrl | None = Field(
        None, description=REDIRECT_URL, examples=[f"{examples.SITE_URL}/thanks"]
    )
    min_fill_seconds: int = Field(3, ge=0, le=600, description=MIN_FILL_SECONDS, examples=[3])

    @model_validator(mode="after")
    def _whole(self) -> "Definition":
        """Keys of fields differ. Rules name fields of the form; one to the next field leads forward, and
        its condition is about a field that was asked before."""
        keys = [field.key for field in self.fields]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                raise wrong_field("fields", "the key {key!r} stands twice", key=key)
        for number, rule in enumerate(self.rules):
            if (problem := self._rule_problem(rule)) is not None:
                where, why = problem
                raise wrong_field(f"rules[{number}].{where}", why)
        return self

    def field(self, key: str) -> FormField | None:
        return next((field for field in self.fields if field.key == key), None)

    def position(self, key: str) -> int:
        """From 0; of a field that there is."""
        return next(number for number, field in enumerate(self.fields) if field.key == key)

    def to_column(self) -> str:
        content = self.model_dump(mode="json", exclude_unset=True)
        if "rules" in content:
            content[STORED_RULES] = content.pop("rules")
        return to_json(content)

    def _rule_problem(self, rule: Rule) -> tuple[str, InvalidValue] | None:
        """Which field of a rule is wrong, and why."""
        if rule.when is not None and (problem := self._condition_problem(rule.when)) is not None:
            return f"when.{problem[0]}", problem[1]
        if not isinstance(rule.to, ToNextField):
            return None
        return self._way_problem(rule, rule.to)

    def _way_problem(self, rule: Rule, to: ToNextField) -> tuple[str, InvalidValue] | None:
        """The same of a rule to the next field: it leads forward, by what is known there."""
        after = rule.after
        if after is None:
            return "to.after", InvalidValue("is required without when")
        for name, key in (("to.after", after), ("to.field", to.field)):
            if key is not None and self.field(key) is None:
                return name, InvalidValue("there is no field {key!r}", key=key)
        if to.field is not None and self.position(to.field) <= self.position(after):
            return "to.field", InvalidValue("must come later than {key!r}", key=after)
        looked_at = rule.when.field if rule.when is not None else after
        is_known = self.position(looked_at) <= self.position(after)
        return (
            None
            if is_known
            else ("when.field", InvalidValue("is asked later than {key!r}", key=after))
        )

    def _condition_problem(self, when: Condition) -> tuple[str, InvalidValue] | None:
        field = self.field(when.field)
        if field is None:
            return "field", InvalidValue("there is no field {key!r}", key=when.field)
        if when.op == "exists":
            is_flag = when.value is None or isinstance(when.value, bool)
            return None if is_flag else ("value", InvalidValue("must be true or false with exists"))
        if field.type not in _TYPES_OF[when.op]:
            return "op", InvalidValue(
                "{operator} is not for a field of type {type}", operator=when.op, type=field.type
            )
        problem = _value_problem(field, when)
        return None if problem is None else ("value", problem)


def _value_problem(field: FormField, when: Condition) -> InvalidValue | None:
    if when.value is None:
        return InvalidValue("is required with {operator}", operator=when.op)
    if when.op == "contains" and field.type != "multichoice":
        return None if isinstance(when.value, str) else InvalidValue("must be a text")
    try:
        comparable(field, when.value)
    except WrongAnswer:
        return InvalidValue("is no answer of a field of type {type}", type=field.type)
    return None


def comparable(field: FormField, value: Any) -> Any:
    """A condition's value in the type of the field's answers. Raises `WrongAnswer`."""
    loose = {"required": False, "min": None, "max": None, "pattern": None}
    if field.type == "rating":
        loose.pop("max")
    read = read_answer(field.model_copy(update=loose), value)
    if read is None:
        raise WrongAnswer("required")
    return read


@lru_cache(maxsize=256)
def read_definition(column: str) -> Definition:
    """Parses a stored definition; cached by its text, so that none can be stale."""
    kept = json.loads(column)
    if STORED_RULES in kept:
        kept["rules"] = kept.pop(STORED_RULES)
    try:
        check_http_url(kept.get("redirect_url") or "https://none.invalid")
    except WrongUrl:
        # Saved before origins were validated: the form keeps working.
        kept["redirect_url"] = None
    return Definition.model_validate(kept)


__all__ = [
    "Condition",
    "Definition",
    "FieldKey",
    "Rule",
    "Target",
    "ToNextField",
    "ToSubscriber",
    "ToTag",
    "ToTicket",
    "ToWebhook",
    "comparable",
    "read_definition",
]
