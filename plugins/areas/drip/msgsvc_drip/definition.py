"""The definition of a drip campaign: steps with message, delay and conditions."""

from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field, model_validator

from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.api.validation import validate, wrong_field
from msgsvc_core.channels import Format
from msgsvc_core.content.substitution import Variables
from msgsvc_core.kernel.i18n import Language, Localized, visible
from msgsvc_core.kernel.json import to_json
from msgsvc_core.messages import SendBody
from msgsvc_core.messages.models import ButtonBody, MediaBody, check_source
from msgsvc_core.messages.templates.models import TemplateContent
from msgsvc_core.subscribers.models import PermissionKey, TagName

#: The longest delay of one step, in days.
MOST_DELAY_DAYS = 366

#: Characters of one text before the limit of the configuration is asked.
MOST_TEXT = 16_000


class Delay(RequestModel):
    """How long after the step before, or after the beginning: one of the three."""

    minutes: int | None = Field(None, ge=0, le=MOST_DELAY_DAYS * 24 * 60)
    hours: int | None = Field(None, ge=0, le=MOST_DELAY_DAYS * 24)
    days: int | None = Field(None, ge=0, le=MOST_DELAY_DAYS)

    @model_validator(mode="after")
    def _one(self) -> "Delay":
        if sum(each is not None for each in (self.minutes, self.hours, self.days)) != 1:
            raise ValueError("give exactly one of minutes, hours and days")
        return self

    @property
    def total_ms(self) -> int:
        given = timedelta(days=self.days or 0, hours=self.hours or 0, minutes=self.minutes or 0)
        return given // timedelta(milliseconds=1)


class AttributeIs(RequestModel):
    """An attribute of the subscriber has this value."""

    name: str = Field(min_length=1, max_length=256)
    equals: str | int | float | bool


class When(RequestModel):
    """Conditions of a step, all of which must hold; else the chain goes on with the next step."""

    tags_any: list[TagName] | None = Field(None, min_length=1, max_length=100)
    tags_none: list[TagName] | None = Field(None, min_length=1, max_length=100)
    permission: PermissionKey | None = None
    lang: Language | None = None
    channel: str | None = None
    attribute: AttributeIs | None = None


class StepMessage(RequestModel):
    """A message as in `POST /v1/send`, without receiver; `text` may be one for each language.

    Texts, as those of a template, may hold each person's own values: `{{ first_name }}`, `{{ lang }}`,
    `{{ tags }}`; and, as not everybody has them, with a default `{{ username | default("friend") }}` and
    `{{ attributes.city | default("your city") }}`.
    """

    text: Annotated[Localized, visible(MOST_TEXT)] | None = None
    template: str | None = Field(
        None, description="Key of a template, in place of text, format, media and buttons."
    )
    variables: Variables | None = Field(
        None, description="For the template, beside each person's own values."
    )
    format: Format = "plain"
    media: MediaBody | None = None
    buttons: list[list[ButtonBody]] = Field(default_factory=list)
    permission: PermissionKey | None = Field(
        None, description="Skipped unless the subscriber has granted it when it is delivered."
    )
    silent: bool = False
    expires_in: int | None = Field(None, ge=1, le=30 * 24 * 3600)
    metadata: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _text_or_template(self) -> "StepMessage":
        check_source(self)
        if self.template is None and self.variables is not None:
            raise wrong_field("variables", "are for a template, and none is given")
        return self

    def to_content(self) -> TemplateContent:
        """What is shown, of a message without a template."""
        shown = self.model_dump(include=set(TemplateContent.model_fields), exclude_unset=True)
        return validate(TemplateContent, shown, languages=None)

    def to_options(self) -> SendBody:
        """What goes along with whatever is shown; the text of it is none."""
        given = self.model_dump(include={"permission", "expires_in", "metadata"})
        return SendBody(text="-", **given)


class Step(RequestModel):
    """A message, how long after the step before it is due, and whom it is for."""

    delay: Delay
    message: StepMessage
    when: When | None = None
    at_local_time: str | None = Field(
        None,
        pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$",
        description="`HH:MM` in the campaign's `timezone`: after the delay, the step waits for this time.",
    )


class DripDefinition(RequestModel):
    """The content of a version: the steps, and how subscribers go through them."""

    steps: list[Step]
    timezone: str = "UTC"
    stop_on: list[str] = Field(default_factory=list)

    def to_column(self) -> str:
        return to_json(self.model_dump(mode="json", exclude_unset=True))


@lru_cache(maxsize=256)
def read_definition(column: str) -> DripDefinition:
    """Parses a stored definition; cached by its text, so that none can be stale."""
    return DripDefinition.model_validate_json(column)
