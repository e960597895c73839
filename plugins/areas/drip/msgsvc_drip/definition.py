"""The definition of a drip campaign: steps with message, delay and conditions."""

from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.api.validation import wrong_field
from msgsvc_core.content.substitution import Variables
from msgsvc_core.kernel.i18n import Language, Localized, visible
from msgsvc_core.kernel.json import from_json, to_json
from msgsvc_core.messages import SendBody
from msgsvc_core.messages.content import ButtonBody, ContentOrTemplate, MediaBody
from msgsvc_core.routing.models import ROUTE_ID
from msgsvc_core.subscribers.models import PermissionKey, TagName

#: The longest delay of one step, in days.
MOST_DELAY_DAYS = 366

#: The name of a step's `route_id` in stored definitions.
_STORED_ROUTE = "route"

#: Characters of one text before the limit of the configuration is asked.
MOST_TEXT = 16_000


class Delay(RequestModel):
    """How long after the step before, or after the beginning: one of the three."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"days": 1}, {"minutes": 30}]})

    minutes: int | None = Field(
        None,
        ge=0,
        le=MOST_DELAY_DAYS * 24 * 60,
        description="Minutes; 0 for at once.",
        examples=[30],
    )
    hours: int | None = Field(
        None, ge=0, le=MOST_DELAY_DAYS * 24, description="Hours of 60 minutes.", examples=[12]
    )
    days: int | None = Field(
        None, ge=0, le=MOST_DELAY_DAYS, description="Days of 24 hours.", examples=[1]
    )

    @model_validator(mode="after")
    def _one(self) -> "Delay":
        """Exactly one of `minutes`, `hours` and `days` is given."""
        if sum(each is not None for each in (self.minutes, self.hours, self.days)) != 1:
            raise ValueError("give exactly one of minutes, hours and days")
        return self

    @property
    def total_ms(self) -> int:
        given = timedelta(days=self.days or 0, hours=self.hours or 0, minutes=self.minutes or 0)
        return given // timedelta(milliseconds=1)


class AttributeIs(RequestModel):
    """An attribute of the subscriber has this value."""

    name: str = Field(
        min_length=1,
        max_length=256,
        description="Name of the attribute, from the subscriber's `attributes`.",
        examples=["city"],
    )
    equals: str | int | float | bool = Field(
        description="The value that it must have, of the same type.", examples=["Berlin"]
    )


class When(RequestModel):
    """Conditions of a step, all of which must hold; else the chain goes on with the next step."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"tags_none": ["staff"], "permission": examples.PERMISSION}]
        }
    )

    tags_any: list[TagName] | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="The subscriber has one of these tags.",
        examples=[[examples.TAG]],
    )
    tags_none: list[TagName] | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="The subscriber has none of these tags.",
        examples=[["staff"]],
    )
    permission: PermissionKey | None = Field(
        None, description="The subscriber has granted it.", examples=[examples.PERMISSION]
    )
    lang: Language | None = Field(
        None, description="The subscriber reads this language.", examples=["en"]
    )
    channel: str | None = Field(
        None,
        description="The subscriber uses this messenger, by the name of its channel.",
        examples=[examples.CHANNEL],
    )
    attribute: AttributeIs | None = Field(
        None, description="An attribute of the subscriber has a value."
    )


class StepMessage(
    ContentOrTemplate[
        Annotated[
            Annotated[Localized, visible(MOST_TEXT)] | None,
            Field(
                description="One text for all, or texts by language. Required without `template`.",
                examples=["{{ first_name }}, your cart is waiting."],
            ),
        ],
        MediaBody,
        Annotated[
            list[list[ButtonBody]],
            Field(examples=[[[{"text": "To the shop", "url": examples.SITE_URL}]]]),
        ],
    ]
):
    """A message as in `POST /v1/send`, without receiver; `text` may be one for each language.

    Texts, as those of a template, may hold each person's own values: `{{ first_name }}`, `{{ lang }}`,
    `{{ tags }}`; and, as not everybody has them, with a default `{{ username | default("friend") }}` and
    `{{ attributes.city | default("your city") }}`.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "text": {
                        "en": "{{ first_name }}, your cart is waiting.",
                        "ru": "{{ first_name }}, корзина ждёт вас.",
                    }
                },
                {"template": "cart-reminder", "variables": {"discount": "10 %"}},
            ]
        }
    )

    template: str | None = Field(
        None,
        description="Key of a template, in place of text, format, media and buttons.",
        examples=["cart-reminder"],
    )
    variables: Variables | None = Field(
        None,
        description="For the template, with each person's own values.",
        examples=[{"discount": "10 %"}],
    )
    permission: PermissionKey | None = Field(
        None,
        description="Skipped unless the subscriber has granted it when it is delivered.",
        examples=[examples.PERMISSION],
    )
    silent: bool = Field(False, description="Deliver without a notification sound.")
    expires_in: int | None = Field(
        None,
        ge=1,
        le=30 * 24 * 3600,
        description="Seconds after the step is due, when the message is skipped if it is not sent yet.",
        examples=[86400],
    )
    metadata: dict[str, Any] | None = Field(
        None,
        description="Your own data, returned in delivery events; at most 4 KiB as JSON.",
        examples=[{"campaign": "cart"}],
    )

    @model_validator(mode="after")
    def _text_or_template(self) -> "StepMessage":
        """Either `text` or `template` is given. With `template`: no `format`, `media` or `buttons`; without
        it: no `variables`."""
        self.check_source()
        if self.template is None and self.variables is not None:
            raise wrong_field("variables", "are for a template, and none is given")
        return self

    def to_options(self) -> SendBody:
        """What goes along with whatever is shown; the text of it is none."""
        given = self.model_dump(include={"permission", "expires_in", "metadata"})
        return SendBody(text="-", **given)


class Step(RequestModel):
    """A message, how long after the step before it is due, and whom it is for."""

    delay: Delay = Field(
        description="How long after the step before, or after the enrollment, it is due."
    )
    message: StepMessage = Field(description="What is sent.")
    when: When | None = Field(
        None, description="Whom it is for; by default everybody who gets here."
    )
    at_local_time: str | None = Field(
        None,
        pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$",
        description="`HH:MM` in the campaign's `timezone`: after the delay, the step waits for this time.",
        examples=["10:00"],
    )
    route_id: str | None = Field(
        None,
        description="Id of a route of `POST /v1/routes`: the person, with all subscribers of their"
        " `external_id`, is tried on its channels in their order. Without one, the step goes to the"
        " subscriber who was enrolled.",
        examples=[ROUTE_ID],
    )


class DripDefinition(RequestModel):
    """The content of a version: the steps, and how subscribers go through them."""

    steps: list[Step]
    timezone: str = "UTC"
    stop_on: list[str] = Field(default_factory=list)

    def to_column(self) -> str:
        content = self.model_dump(mode="json", exclude_unset=True)
        for step in content["steps"]:
            if "route_id" in step:
                step[_STORED_ROUTE] = step.pop("route_id")
        return to_json(content)


@lru_cache(maxsize=256)
def read_definition(column: str) -> DripDefinition:
    """Parses a stored definition; cached by its text, so that none can be stale."""
    content = from_json(column)
    for step in content["steps"]:
        if _STORED_ROUTE in step:
            step["route_id"] = step.pop(_STORED_ROUTE)
    return DripDefinition.model_validate_json(to_json(content))
