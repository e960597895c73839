"""Models of mailings: internal, and of the API."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from msgsvc_core.api import examples
from msgsvc_core.api.as_given import without_null
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.content.substitution import Variables
from msgsvc_core.kernel.i18n import Localized, visible
from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings.audience import Audience
from msgsvc_core.messages.content import (
    ContentOrTemplate,
    MessageButton,
    MessageContent,
    MessageMedia,
    TemplatePart,
)
from msgsvc_core.messages.templates.models import SOURCE_LENGTH, TemplateButton, TemplateMedia
from msgsvc_core.routing.models import RouteStep, read_steps
from msgsvc_core.subscribers.models import PermissionKey

MailingStatus = Literal["scheduled", "running", "paused", "completed", "cancelled"]
#: What the values of `MailingStatus` mean.
STATUS = (
    "`scheduled` until its time, `running`, `paused` by a request, `completed` when every recipient has an"
    " outcome, or `cancelled`."
)

RecipientStatus = Literal["queued", "sent", "failed", "skipped", "unknown"]

#: The status of a row: with a route also those of a person that are no outcome. `standby` is a channel that
#: has not been tried, `passed` one that did not reach them, `doubted` one of which nobody knows.
RowStatus = RecipientStatus | Literal["standby", "passed", "doubted"]


#: Counts of recipients, which a mailing's progress, its events and its answers share.
Sent = Annotated[
    int, Field(description="Recipients whose messenger accepted the message.", examples=[1180])
]
Failed = Annotated[
    int,
    Field(
        description="Recipients who did not get it, including those of `unknown`.", examples=[12]
    ),
]
Unknown = Annotated[
    int,
    Field(
        description="Of `failed`: those for whom the service can't tell whether they got it, because"
        " the connection broke after the request. They are not tried again.",
        examples=[2],
    ),
]
Skipped = Annotated[
    int,
    Field(
        description="Skipped recipients: unsubscribed, without the permission, expired or"
        " cancelled.",
        examples=[8],
    ),
]
Total = Annotated[
    int,
    Field(
        description="Recipients of the audience: counted on acceptance and again at the start. At the end"
        " it is the sum of `sent`, `failed` and `skipped`.",
        examples=[1200],
    ),
]
Progress = Annotated[
    float, Field(description="Share of recipients with an outcome, from 0 to 1.", examples=[1.0])
]
Eta = Annotated[
    int | None,
    Field(
        description="Estimated seconds until the end. Null while it is not running, and until there is a"
        " rate to estimate from.",
        examples=[None],
    ),
]
#: The stored cause of a mailing whose project was disabled.
PROJECT_DISABLED = "the project is disabled"
StopCode = Annotated[
    Literal["audience_too_large", "project_disabled", "service_failed"] | None,
    Field(
        description="Why the service stopped it. `audience_too_large`: cancelled, because it had too many"
        " recipients at its time. `project_disabled`: paused with its project. `service_failed`: paused,"
        " because sending failed. Null if the service did not stop it.",
        examples=[None],
    ),
]
StopCause = Annotated[
    str | None, Field(description="`code` as a sentence for people.", examples=[None])
]


_TEXT = "Hi {{ first_name }}, the spring sale has begun."
_SALE_URL = f"{examples.SITE_URL}/sale"


class _AudienceTemplate(TemplatePart):
    """The template of a message to an audience, and its values."""

    template: str | None = Field(
        None,
        description="Key of a template, in place of text, format, media and buttons.",
        examples=["spring-sale"],
    )
    variables: Variables | None = Field(
        None,
        description="Texts, numbers, true or false for `{{ name }}`, the same for all.",
        examples=[{"discount": "10 %"}],
    )


class MessageSource(
    _AudienceTemplate,
    ContentOrTemplate[
        Annotated[
            Annotated[Localized, visible(SOURCE_LENGTH)] | None,
            Field(
                description='One text for all, or texts by language: `{"en": "Hi", "ru": ...}`.',
                examples=[_TEXT],
            ),
        ],
        TemplateMedia,
        Annotated[
            list[list[TemplateButton]],
            Field(examples=[[[{"text": "To the shop", "url": _SALE_URL}]]]),
        ],
    ],
):
    """The content of a message to an audience: a `text`, or a `template`."""


class MailingMessage(MessageSource):
    """What everybody of an audience gets: a `text`, or a `template`.

    Both may hold `variables`, which are the same for all, and each recipient's own: `first_name`,
    `username`, `lang`, `tags`, `attributes.<name>`.
    """

    permission: PermissionKey | None = Field(
        None,
        description="Skipped for recipients who have not granted it when it is sent.",
        examples=[examples.PERMISSION],
    )
    silent: bool = Field(False, description="Deliver without a notification sound.")
    expires_in: int | None = Field(
        None,
        ge=1,
        le=30 * 24 * 3600,
        description="Seconds after `send_at`, or after the request, when remaining recipients are "
        "skipped.",
        examples=[86400],
    )
    metadata: dict[str, Any] | None = Field(
        None,
        description="Your own data, returned in delivery events; at most 4 KiB as JSON.",
        examples=[{"campaign": "spring"}],
    )


class MailingButton(
    MessageButton[
        Annotated[Localized, Field(examples=["To the shop"])],
        Annotated[str, Field(examples=[_SALE_URL])],
        Annotated[str, Field(examples=["sale"])],
    ]
):
    """A button, with either `url` or `data`."""

    model_config = ConfigDict(extra="forbid")


class MailingMedia(
    MessageMedia[
        Annotated[str, Field(examples=[f"{examples.SITE_URL}/sale.jpg"])],
        Annotated[str, Field(examples=["sale.jpg"])],
    ]
):
    """A file that is shown with the message."""

    model_config = ConfigDict(extra="forbid")


class MailingMessageAnswer(
    MessageContent[Localized | None, MailingMedia, list[list[MailingButton]]], _AudienceTemplate
):
    """The message as it was given. Fields that were not given are absent."""

    model_config = ConfigDict(extra="forbid")

    text: Localized | None = Field(
        None, description="One text, or texts by language.", examples=[_TEXT]
    )
    variables: dict[str, str | int | float | bool] | None = Field(
        None, description="Values that are the same for all.", examples=[{"discount": "10 %"}]
    )
    permission: str | None = Field(
        None,
        description="Skipped for recipients who have not granted it when it is sent.",
        examples=[examples.PERMISSION],
    )
    silent: bool = Field(False, description="Whether it comes without a notification sound.")
    expires_in: int | None = Field(
        None,
        description="Seconds after its time, when remaining recipients are skipped.",
        examples=[86400],
    )
    metadata: dict[str, Any] | None = Field(
        None, description="Your own data.", examples=[{"campaign": "spring"}]
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """No field is null, and an absent one is not to be taken for its default."""
        shown = handler(schema)
        properties = handler.resolve_ref_schema(shown)["properties"]
        for name, field in properties.items():
            properties[name] = without_null(field)
            properties[name].pop("default", None)
        return shown


#: Where an experiment is: its variants are being sent, it waits for a winner, or the winner goes to the rest.
Stage = Literal["test", "waiting", "rest"]


@value_object
class NewVariant:
    """A variant of the message; each recipient gets one of them."""

    name: str
    message: MailingMessage


@value_object
class NewExperiment:
    """How the variants of a mailing are tried: by `share_percent` of its recipients. One of them goes to the
    rest: who chooses it is up to the plugin, which finds `terms` in `Mailing.experiment`."""

    variants: Sequence[NewVariant]
    share_percent: int
    terms: Mapping[str, Any]


@value_object
class NewMailing:
    """A mailing to be started: now, or at `send_at_ms`.

    `source` is the plugin that starts it, e.g. `broadcasts`. `per_minute` limits the messages of any minute.
    """

    source: str
    message: MailingMessage
    audience: Audience
    send_at_ms: int | None = None
    per_minute: int | None = None
    #: An id chosen by the caller makes repeated calls idempotent; otherwise a new one is used.
    job_id: str | None = None
    #: What the sender calls it.
    name: str | None = None
    #: Whether clicks on its links are counted.
    tracks_links: bool = False
    #: Whether it was accepted earlier and is started at its time: unknown subscriber ids are then skipped,
    #: whatever their format.
    was_kept: bool = False
    #: The variants, of which the first is `message`.
    experiment: NewExperiment | None = None
    #: The id of a route by which each person is reached, in place of the one channel of each subscriber.
    route_id: str | None = None


@value_object
class Mailing:
    """A row. `total` is counted when it is accepted, and again when the audience is expanded.

    At the end, with `finished_at_ms`, it is the sum of `sent`, `failed` and `skipped`.
    """

    project_id: str
    job_id: str
    source: str
    status: MailingStatus
    content: str
    audience: dict[str, Any]
    permission: str | None
    metadata: dict[str, Any] | None
    per_minute: int | None
    expires_at_ms: int | None
    send_at_ms: int | None
    total: int
    sent: int
    #: Includes `unknown`.
    failed: int
    skipped: int
    #: Why it was stopped, for people.
    error: str | None
    #: The mailing whose recipients with an unknown outcome get this one.
    resend_of: str | None
    created_at_ms: int
    started_at_ms: int | None
    finished_at_ms: int | None
    #: The last subscriber read by the expansion; None once it is complete.
    expanded_to: str | None
    #: When the next message is due by `per_minute`, in Unix microseconds.
    next_us: int
    #: Start time, and count of recipients at that time, for the rate.
    timed_from_ms: int | None
    timed_from: int
    #: The number of recipients charged when it was accepted; None for mailings older than this field.
    charged: int | None = None
    #: When its ledger was deleted.
    purged_at_ms: int | None = None
    #: The number of `failed` whose outcome is unknown.
    unknown: int = 0
    #: What the sender calls it; recipients never see it.
    name: str | None = None
    #: `share_percent`, `terms`, and the `name` and `content` of each of `variants`; None without variants.
    experiment: dict[str, Any] | None = None
    #: None if there is no second stage.
    stage: Stage | None = None
    #: When all recipients of the variants had an outcome.
    tested_at_ms: int | None = None
    #: The number of the variant that the rest gets.
    winner: int | None = None
    #: `at_ms`, and what else the chooser records.
    decision: dict[str, Any] | None = None
    #: The route by which it is sent, and its steps at that time (`routing.models.read_steps`).
    route_id: str | None = None
    route_steps: str | None = None
    #: The last row of which the expansion knows whether it is the first of its person.
    chosen_to: str | None = None

    @property
    def steps(self) -> tuple[RouteStep, ...]:
        """The steps of its route."""
        return () if self.route_steps is None else read_steps(self.route_steps)

    def step_of(self, channel: str) -> int | None:
        """The number of the step that uses a channel; None without a route."""
        found = (number for number, step in enumerate(self.steps) if step.channel == channel)
        return next(found, None)

    @property
    def variants(self) -> list[dict[str, Any]]:
        """The name and content of each variant; empty for one message."""
        return [] if self.experiment is None else list(self.experiment["variants"])

    @property
    def is_testing(self) -> bool:
        """Whether only recipients with a variant of their own are sent to."""
        return self.stage in {"test", "waiting"}

    def content_of(self, variant: int | None) -> str:
        """The content for a recipient with that variant; None for what the others get."""
        number = self.winner if variant is None else variant
        return self.content if number is None else str(self.variants[number]["content"])

    @property
    def key(self) -> tuple[str, str]:
        return self.project_id, self.job_id

    def again(self, job_id: str, audience: dict[str, Any], *, total: int, now_ms: int) -> "Mailing":
        """A new mailing with the same content, to the recipients of this one with an unknown outcome."""
        return replace(
            self,
            job_id=job_id,
            status="scheduled",
            audience=audience,
            send_at_ms=None,
            total=total,
            sent=0,
            failed=0,
            skipped=0,
            error=None,
            resend_of=self.job_id,
            stage=None,
            tested_at_ms=None,
            created_at_ms=now_ms,
            started_at_ms=None,
            finished_at_ms=None,
            expanded_to="",
            next_us=0,
            timed_from_ms=None,
            timed_from=0,
            charged=total,
            purged_at_ms=None,
            unknown=0,
            # On the channel where nobody knows whether it arrived.
            route_id=None,
            route_steps=None,
            chosen_to=None,
        )

    @property
    def shown_audience(self) -> dict[str, Any]:
        """The audience with the number of `subscriber_ids`, of which there may be 10,000, instead of the
        ids."""
        shown = {name: value for name, value in self.audience.items() if name != "subscriber_ids"}
        if "subscriber_ids" in self.audience:
            shown["subscriber_ids_count"] = len(set(self.audience["subscriber_ids"]))
        return shown

    @property
    def done(self) -> int:
        """The number of recipients with an outcome."""
        return self.sent + self.failed + self.skipped

    def to_message(self, variant: int | None = None) -> dict[str, Any]:
        """The content as `MailingMessage`: of a template, the text at the time of the call."""
        kept = json.loads(self.content_of(variant))
        message = {**kept["content"], "variables": kept["variables"], "silent": kept["silent"]}
        if self.expires_at_ms is not None:
            begins_ms = self.created_at_ms if self.send_at_ms is None else self.send_at_ms
            message["expires_in"] = (self.expires_at_ms - begins_ms) // 1000
        return {**message, "permission": self.permission, "metadata": self.metadata}

    def event_fields(self) -> dict[str, Any]:
        return {
            "job_id": self.job_id,
            "sent": self.sent,
            "failed": self.failed,
            "unknown": self.unknown,
            "skipped": self.skipped,
            "total": self.total,
        }

    @property
    def stop_code(self) -> StopCode:
        """Why the service stopped it; None if it did not."""
        if self.error is None:
            return None
        if self.status == "cancelled":
            return "audience_too_large"
        return "project_disabled" if self.error == PROJECT_DISABLED else "service_failed"

    def progress(self) -> float:
        """The share of the recipients with an outcome, 0 to 1."""
        if self.finished_at_ms is not None:
            return 1.0
        return round(self.done / self.total, 4) if self.total else 0.0

    def eta_seconds(self, now_ms: int) -> int | None:
        """The remaining seconds, according to `per_minute` and the rate since the last start.

        None while it is not running, and before there is a rate.
        """
        if self.status != "running" or self.timed_from_ms is None or self.is_testing:
            return None
        left, made = self.total - self.done, self.done - self.timed_from
        passed_ms = now_ms - self.timed_from_ms
        by_pace = left * 60 / self.per_minute if self.per_minute else 0.0
        if made <= 0 or passed_ms <= 0:
            return round(by_pace) if self.per_minute else None
        return round(max(by_pace, left * passed_ms / made / 1000))


class MailingProgress(ResponseModel):
    """How far a message to an audience is: for plugins whose answers name a mailing."""

    status: MailingStatus = Field(description=STATUS)
    sent: Sent
    failed: Failed
    unknown: Unknown
    skipped: Skipped
    total: Total
    progress: Progress
    eta_seconds: Eta
    code: StopCode
    error: StopCause

    @classmethod
    def of(cls, mailing: Mailing, now_ms: int) -> "MailingProgress":
        return cls(
            status=mailing.status,
            sent=mailing.sent,
            failed=mailing.failed,
            unknown=mailing.unknown,
            skipped=mailing.skipped,
            total=mailing.total,
            progress=mailing.progress(),
            eta_seconds=mailing.eta_seconds(now_ms),
            code=mailing.stop_code,
            error=mailing.error,
        )


@value_object
class Recipient:
    """A row of the ledger: a recipient and their outcome."""

    subscriber_id: str
    bot: str
    status: RecipientStatus
    attempts: int
    message_id: str | None
    reason: str | None
    error: str | None
    #: The number of the route's step that they are at, from 0; None without a route.
    step: int | None = None


NotSent = Literal["failed", "unknown", "skipped"]


@value_object
class OutcomeReason:
    """How many recipients did not get it for a reason: one of `Reason`, or for skipped ones a sentence; None
    where none is known."""

    status: NotSent
    reason: str | None
    count: int


@value_object
class MailingShard:
    """The part of a mailing that one bot sends: its position, and the recipients in flight."""

    bot: str
    walked_to: str
    in_flight: list[str]
    is_done: bool
    #: Whether it walks for the second time, to those who get the winner of an experiment.
    is_rest: bool = False

    def of_stage(self, mailing: Mailing) -> "MailingShard":
        """The shard as its mailing's stage needs it: in the second one it restarts."""
        if mailing.stage != "rest" or self.is_rest:
            return self
        return replace(self, walked_to="", is_done=False, is_rest=True)


@value_object
class PartOutcomes:
    """The recipients of a part of a mailing by status: of a variant, or of a channel of its route."""

    name: str
    sent: int = 0
    #: Includes `unknown`.
    failed: int = 0
    unknown: int = 0
    skipped: int = 0
    total: int = 0


@value_object
class LockedShard:
    """A locked mailing, one of its shards, and whether its project is active."""

    mailing: Mailing
    shard: MailingShard
    is_project_active: bool
