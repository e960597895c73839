"""Models of broadcasts in the API."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from msgsvc_core.api import examples
from msgsvc_core.api.as_given import AsGiven
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery
from msgsvc_core.api.types import CreatedAt, MomentMs, SubscriberId, Time, Url
from msgsvc_core.channels.failures import Reason as FailureReason
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.values import value_object
from msgsvc_core.kernel.visible_text import check_visible, one_line
from msgsvc_core.mailings import (
    Audience,
    Mailing,
    MailingMessage,
    NewExperiment,
    NewVariant,
    Recipient,
)
from msgsvc_core.mailings.models import (
    STATUS,
    AudienceAnswer,
    Eta,
    Failed,
    MailingMessageAnswer,
    MailingStatus,
    MessageSource,
    PartOutcomes,
    Progress,
    RecipientStatus,
    Sent,
    Skipped,
    StopCause,
    Total,
    Unknown,
)
from msgsvc_core.mailings.service import ALL_PERCENT
from msgsvc_core.routing.models import ROUTE_ID

#: What marks the mailings that are broadcasts.
SOURCE = "broadcasts"

BroadcastId = Annotated[str, Field(description="The broadcast's id.", examples=[examples.JOB_ID])]

NAME = "What you call it, for lists; recipients don't see it."
ROUTE = (
    "Id of a route of `POST /v1/routes`. Subscribers with one `external_id` are one person then, who gets one"
    " message: by the first channel of the route that works. Goes with any filters of `audience` but"
    " `channels`."
)


def _to_one_line(name: str) -> str:
    return check_visible(one_line(name))


BroadcastName = Annotated[
    str,
    Field(max_length=100, description=NAME, examples=["Spring sale"]),
    AfterValidator(_to_one_line),
]


#: Variants that can be compared.
MIN_VARIANTS, MAX_VARIANTS = 2, 4

VariantName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=30,
        description="The variant's name; by default A, B, C, D by place.",
        examples=["A"],
    ),
    AfterValidator(_to_one_line),
]
#: Who has chosen a winner.
ChosenBy = Annotated[
    Literal["clicks", "member", "api"],
    Field(
        description="`clicks` after `after_s`, a `member` in the dashboard, or a request to the `api`.",
        examples=["clicks"],
    ),
]
#: Why clicks chose a winner.
Reason = Literal["most_clicks", "tie", "no_clicks"]
Clicked = Annotated[
    int,
    Field(
        description="People who got it and clicked something in it at least once.", examples=[120]
    ),
]
ClickedShare = Annotated[
    float, Field(description="`clicked` of `sent`, from 0 to 1.", examples=[0.1])
]

Rule = Literal["clicks", "manual"]
SHARE = "Percentage of the recipients who get the variants, each as many as the others."
AFTER = "Seconds from the end of the first stage until clicks decide; without effect on `manual`."
RULE = (
    "`clicks`: the variant that the largest share of its recipients clicked in; of equal ones the first."
    " `manual`: only `POST /v1/broadcast/{job_id}/winner` or the dashboard decides."
)


class BroadcastVariant(MessageSource):
    """A variant of the message; each recipient gets one of them."""

    name: VariantName | None = None


class BroadcastExperiment(RequestModel):
    """How the variants are tried, and one is chosen for the rest."""

    share_percent: int = Field(
        20, ge=1, le=ALL_PERCENT, description=f"{SHARE} With 100 there is no rest.", examples=[20]
    )
    winner: Rule = Field("clicks", description=RULE)
    after_s: int = Field(3600, ge=300, le=7 * 24 * 3600, description=AFTER, examples=[3600])


class BroadcastBody(MailingMessage):
    """A message to an audience, or several `variants` of it, now or at `send_at`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Spring sale",
                    "text": "Hi {{ first_name }}, the spring sale has begun.",
                    "buttons": [[{"text": "To the shop", "url": f"{examples.SITE_URL}/sale"}]],
                    "audience": {"tags_any": [examples.TAG], "langs": ["en"]},
                    "permission": examples.PERMISSION,
                    "messages_per_minute": 600,
                    "metadata": {"campaign": "spring"},
                },
                {
                    "template": "spring-sale",
                    "variables": {"discount": "10 %"},
                    "audience": {"all": True},
                    "send_at": examples.LATER,
                },
                {
                    "variants": [
                        {"text": "The spring sale has begun."},
                        {"text": "{{ first_name }}, 10 % off until Sunday."},
                    ],
                    "experiment": {"share_percent": 20, "winner": "clicks", "after_s": 3600},
                    "audience": {"all": True},
                },
            ]
        }
    )

    name: BroadcastName | None = Field(None, description=NAME, examples=["Spring sale"])
    variants: list[BroadcastVariant] | None = Field(
        None,
        min_length=MIN_VARIANTS,
        max_length=MAX_VARIANTS,
        description="Messages to compare, in place of template, variables, text, format, media and"
        " buttons.",
    )
    experiment: BroadcastExperiment | None = Field(
        None, description="How `variants` are compared; the defaults if it is left out."
    )
    audience: Audience = Field(description="Who gets it.")
    route: str | None = Field(None, description=ROUTE, examples=[ROUTE_ID])
    send_at: MomentMs | None = Field(
        None,
        description="When it starts; left out: at once. A time in the past is refused.",
        examples=[examples.LATER],
    )
    messages_per_minute: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Messages per minute at most, evenly spread. By default as fast as the messengers"
        " allow.",
        examples=[600],
    )
    dry_run: bool = Field(
        False,
        description="Validates only, and returns the number of recipients and the credits that it would"
        " cost.",
    )

    @model_validator(mode="after")
    def _text_or_template(self) -> Self:
        """Either `text`, `template` or `variants` is given. `experiment` needs `variants`, whose names
        differ."""
        if self.variants is None:
            if self.experiment is not None:
                raise InvalidValue("needs variants", field="experiment")
            self.check_source()
            return self
        for field in MessageSource.model_fields:
            value = getattr(self, field)
            # A default that is written out counts as omitted.
            if value and (field, value) != ("format", "plain"):
                raise InvalidValue("can't stand beside variants, which have their own", field=field)
        names = self.variant_names
        if len(set(names)) < len(names):
            raise InvalidValue("each variant needs a name of its own", field="variants")
        experiment = self.experiment or BroadcastExperiment()
        if (
            experiment.share_percent < ALL_PERCENT
            and self.expires_in is not None
            and self.expires_in <= experiment.after_s
        ):
            raise InvalidValue(
                "ends before the winner is chosen: it must be more than experiment.after_s",
                field="expires_in",
            )
        return self

    @property
    def variant_names(self) -> list[str]:
        return [
            each.name or chr(ord("A") + place) for place, each in enumerate(self.variants or ())
        ]

    def to_message(self) -> MailingMessage:
        """What everybody gets, without how and when; the first of several variants."""
        return self.to_messages()[0]

    def to_messages(self) -> list[MailingMessage]:
        """The message, or each of its variants."""
        given = self.model_dump(
            include=set(MailingMessage.model_fields), exclude_unset=True, exclude_none=True
        )
        if self.variants is None:
            return [MailingMessage.model_validate(given)]
        common = {name: each for name, each in given.items() if name not in _CONTENT}
        return [
            MailingMessage.model_validate(
                {
                    **common,
                    **each.model_dump(include=_CONTENT, exclude_unset=True, exclude_none=True),
                }
            )
            for each in self.variants
        ]

    def to_experiment(self) -> NewExperiment | None:
        """How its variants are tried; None without variants."""
        if self.variants is None:
            return None
        experiment = self.experiment or BroadcastExperiment()
        return NewExperiment(
            [
                NewVariant(name, message)
                for name, message in zip(self.variant_names, self.to_messages(), strict=True)
            ],
            experiment.share_percent,
            {"winner": experiment.winner, "after_s": experiment.after_s},
        )


#: The fields of a variant that are those of a message.
_CONTENT = set(MessageSource.model_fields)


def decides_at_ms(mailing: Mailing) -> int | None:
    """When clicks decide, in Unix milliseconds; None before the end of the first stage, and if they
    don't."""
    if mailing.experiment is None or mailing.tested_at_ms is None:
        return None
    terms = mailing.experiment["terms"]
    if terms["winner"] != "clicks":
        return None
    return mailing.tested_at_ms + int(terms["after_s"]) * 1000


class BroadcastTestBody(MailingMessage):
    """The message of a broadcast, and the subscriber who gets it as a test."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "subscriber_id": examples.SUBSCRIBER_ID,
                    "text": "Hi {{ first_name }}, the spring sale has begun.",
                    "buttons": [[{"text": "To the shop", "url": f"{examples.SITE_URL}/sale"}]],
                }
            ]
        }
    )

    subscriber_id: SubscriberId


class BroadcastAccepted(ResponseModel):
    """The broadcast that was taken; `total` is how many would get it now.

    With `dry_run` there are `total` and `credits` alone: nothing was taken.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"job_id": examples.JOB_ID, "status": "scheduled", "total": 1200},
                {"total": 1200, "credits": 1200},
            ]
        }
    )
    leave_out_none = frozenset({"job_id", "status", "credits"})

    job_id: str | None = Field(
        None,
        description="Id for `GET /v1/broadcast/{job_id}`; absent with `dry_run`.",
        examples=[examples.JOB_ID],
    )
    status: MailingStatus | None = Field(
        None,
        description="`scheduled`, until its recipients are being sent to; absent with `dry_run`.",
        examples=["scheduled"],
    )
    total: int = Field(description="Recipients that the audience has now.", examples=[1200])
    credits: int | None = Field(
        None,
        description="Credits that it would cost now, 0 where usage is not charged; only with `dry_run`.",
        examples=[1200],
    )


class ExperimentAnswer(ResponseModel):
    """How the variants of a broadcast are tried, and which of them was chosen."""

    share_percent: int = Field(description=SHARE, examples=[20])
    winner: Rule = Field(description=RULE)
    after_s: int = Field(description=AFTER, examples=[3600])
    variants: list[str] = Field(description="The names of the variants.", examples=[["A", "B"]])
    state: Literal["testing", "waiting", "decided", "ended"] = Field(
        description="`testing` while the variants are sent, `waiting` for the winner, `decided`, or `ended`"
        " without one.",
        examples=["decided"],
    )
    decides_at: Time | None = Field(
        description="When clicks decide; null before the end of the first stage, and if they don't.",
        examples=[examples.LATER],
    )
    chosen: VariantName | None = Field(description="The variant for the rest; null before.")
    chosen_by: ChosenBy | None = Field(description="Who chose it; null before.")
    chosen_at: Time | None = Field(description="When it was chosen; null before.")
    reason: Reason | None = Field(
        description="Why clicks chose it: `most_clicks`, or the first because of a `tie` or `no_clicks`;"
        " null if they did not.",
        examples=["most_clicks"],
    )

    @classmethod
    def of(cls, mailing: Mailing) -> "ExperimentAnswer | None":
        """None for a broadcast without variants."""
        if mailing.experiment is None:
            return None
        names = [each["name"] for each in mailing.variants]
        terms, decision = mailing.experiment["terms"], mailing.decision or {}
        return cls(
            share_percent=mailing.experiment["share_percent"],
            winner=terms["winner"],
            after_s=terms["after_s"],
            variants=names,
            state=_state(mailing),
            decides_at=optional_rfc3339(decides_at_ms(mailing)),
            chosen=None if mailing.winner is None else names[mailing.winner],
            chosen_by=decision.get("by"),
            chosen_at=optional_rfc3339(decision.get("at_ms")),
            reason=decision.get("reason"),
        )


def _state(mailing: Mailing) -> Literal["testing", "waiting", "decided", "ended"]:
    if mailing.winner is not None:
        return "decided"
    if mailing.finished_at_ms is not None or mailing.status == "cancelled":
        return "ended"
    return "waiting" if mailing.stage == "waiting" else "testing"


class VariantFigures(ResponseModel):
    """A variant, and what became of it. Who got it as the winner is not among its figures."""

    name: VariantName
    message: AsGiven[MailingMessageAnswer] = Field(
        description="The message; of a template, the text at the time of the request.",
        examples=[{"text": "The spring sale has begun."}],
    )
    sent: Sent
    failed: Failed
    unknown: Unknown
    skipped: Skipped
    total: int = Field(description="Recipients who were chosen for it.", examples=[1200])
    clicked: Clicked
    clicked_share: ClickedShare

    @classmethod
    def of(cls, outcomes: PartOutcomes, clicked: int, message: dict[str, Any]) -> "VariantFigures":
        return cls(
            name=outcomes.name,
            message=MailingMessageAnswer.model_validate(
                {name: each for name, each in message.items() if each}
            ),
            sent=outcomes.sent,
            failed=outcomes.failed,
            unknown=outcomes.unknown,
            skipped=outcomes.skipped,
            total=outcomes.total,
            clicked=clicked,
            clicked_share=round(clicked / outcomes.sent, 4) if outcomes.sent else 0.0,
        )

    def compared(self) -> dict[str, Any]:
        """What a decision records of it."""
        return self.model_dump(include={"name", "sent", "failed", "clicked", "clicked_share"})


class BroadcastVariants(ResponseModel):
    """The variants of a broadcast, side by side."""

    variants: list[VariantFigures] = Field(
        description="In the order of the request; empty for one message."
    )


class ChannelFigures(ResponseModel):
    """A channel of a broadcast's route, and the people who stand there: each counts once, on the channel that
    reached them, is tried, or was tried last."""

    channel: str = Field(description="The channel.", examples=["messenger_a"])
    sent: Sent
    failed: Failed
    unknown: Unknown
    skipped: Skipped
    total: int = Field(
        description="People who stand there, those who wait for it included.", examples=[3]
    )

    @classmethod
    def of(cls, outcomes: PartOutcomes) -> "ChannelFigures":
        return cls(
            channel=outcomes.name,
            sent=outcomes.sent,
            failed=outcomes.failed,
            unknown=outcomes.unknown,
            skipped=outcomes.skipped,
            total=outcomes.total,
        )


class BroadcastChannels(ResponseModel):
    """The channels of a broadcast's route, side by side."""

    channels: list[ChannelFigures] = Field(
        description="In the order of the route; empty without one, and after `recipients_until`"
        " with zeros."
    )


class WinnerBody(RequestModel):
    """The winner of an experiment."""

    variant: str = Field(
        min_length=1, max_length=30, description="The variant's name.", examples=["B"]
    )


@value_object
class Link:
    """A tracked link of a broadcast."""

    project_id: str
    job_id: str
    link_id: str
    url: str


class LinkClicks(ResponseModel):
    """A tracked link of a broadcast, and how many opened it."""

    url: Url = Field(
        description="The page that it leads to.", examples=[f"{examples.SITE_URL}/sale"]
    )
    people: int = Field(
        description="Recipients who opened it, each counted once; of the first 10,000 clicks on links of"
        " the broadcast.",
        examples=[240],
    )


class ButtonClicks(ResponseModel):
    """A button of a broadcast that sends `data`, and how many pressed it."""

    data: str = Field(description="The button's `data`.", examples=["call"])
    people: int = Field(
        description="Recipients who pressed it, each counted once; of the first 10,000 presses of the"
        " broadcast's buttons.",
        examples=[35],
    )


class BroadcastAnswer(ResponseModel):
    """A broadcast and how far it is."""

    job_id: BroadcastId
    name: str | None = Field(description=NAME, examples=["Spring sale"])
    source: str = Field(
        description="Which area started it: `broadcasts`; `scheduled` for `/v1/scheduled` and"
        " `/v1/recurring`; `forms` for the route of a form to a tag; or another plugin."
        " `broadcast.completed` is emitted for `broadcasts` alone.",
        examples=["broadcasts"],
    )
    status: MailingStatus = Field(description=STATUS, examples=["completed"])
    sent: Sent
    failed: Failed
    unknown: Unknown
    skipped: Skipped
    total: Total
    progress: Progress
    eta_seconds: Eta
    error: StopCause
    audience: AudienceAnswer = Field(
        description="Who gets it.", examples=[{"tags_any": [examples.TAG], "langs": ["en"]}]
    )
    route: str | None = Field(
        description="The route by which each person is reached; null for the channel of each subscriber.",
        examples=[None],
    )
    messages_per_minute: int | None = Field(
        description="Messages per minute at most; null for as fast as the messengers allow.",
        examples=[600],
    )
    metadata: dict[str, Any] | None = Field(
        description="Your own data, from the request.", examples=[{"campaign": "spring"}]
    )
    resend_of: str | None = Field(
        description="The broadcast whose recipients with an unknown outcome get this one; null unless it"
        " is a resend.",
        examples=[None],
    )
    experiment: ExperimentAnswer | None = Field(
        description="How its variants are tried; null for one message."
    )
    send_at: Time | None = Field(
        description="The start time that was asked for; null for at once.", examples=[None]
    )
    created_at: CreatedAt = Field(examples=[examples.TIME])
    started_at: Time | None = Field(description="When it began; null before.")
    finished_at: Time | None = Field(
        description="When the last delivery ended; null before, also while a cancelled one has deliveries"
        " in progress.",
        examples=["2026-03-01T09:32:00.000Z"],
    )
    recipients_until: Time | None = Field(
        description="Until when `GET /v1/broadcast/{job_id}/recipients` lists them; null before the end.",
        examples=["2026-03-31T09:30:00.000Z"],
    )
    links: list[LinkClicks] | None = Field(
        None,
        description="Clicks on its links, in the order of the message; empty unless the project's"
        " `link_tracking` was on when it was accepted. Null in all but `GET /v1/broadcast/{job_id}`.",
    )
    buttons: list[ButtonClicks] | None = Field(
        None,
        description="Presses of its buttons that send `data`, the most pressed first. Null in all but"
        " `GET /v1/broadcast/{job_id}`.",
    )

    @classmethod
    def of(cls, mailing: Mailing, now_ms: int, until_ms: int | None) -> "BroadcastAnswer":
        return cls(
            **mailing.event_fields(),
            name=mailing.name,
            source=mailing.source,
            status=mailing.status,
            progress=mailing.progress(),
            eta_seconds=mailing.eta_seconds(now_ms),
            error=mailing.error,
            audience=mailing.shown_audience,
            route=mailing.route_id,
            messages_per_minute=mailing.per_minute,
            metadata=mailing.metadata,
            resend_of=mailing.resend_of,
            experiment=ExperimentAnswer.of(mailing),
            send_at=optional_rfc3339(mailing.send_at_ms),
            created_at=to_rfc3339(mailing.created_at_ms),
            started_at=optional_rfc3339(mailing.started_at_ms),
            finished_at=optional_rfc3339(mailing.finished_at_ms),
            recipients_until=optional_rfc3339(until_ms),
        )


class BroadcastList(ResponseModel):
    """A page of broadcasts, newest first."""

    data: list[BroadcastAnswer] = Field(description="The broadcasts of this page.")
    next_cursor: NextCursor


class BroadcastQuery(PageQuery):
    """Filters and paging."""

    status: MailingStatus | None = Field(
        None, description="Only broadcasts with this status.", examples=["running"]
    )


class RecipientAnswer(ResponseModel):
    """A person of the audience and the outcome for them."""

    subscriber_id: SubscriberId
    channel: str | None = Field(
        description="The channel of the route by which they were reached, or were tried last; null without a"
        " `route`.",
        examples=[None],
    )
    status: RecipientStatus = Field(
        description="`queued` until there is an outcome; `unknown` if the service can't tell whether they"
        " got it.",
        examples=["sent"],
    )
    reason: FailureReason | None = Field(
        description="Why the last attempt failed; null if it did not.", examples=[None]
    )
    error: str | None = Field(
        description="The cause for people: why the last attempt failed, or why they were skipped. Null"
        " if there is none.",
        examples=[None],
    )
    attempts: int = Field(description="How often sending was tried.", examples=[1])
    message_id: str | None = Field(
        description="Id of their message, for `GET /v1/messages/{message_id}`; null before the last"
        " attempt.",
        examples=[examples.MESSAGE_ID],
    )

    @classmethod
    def of(cls, recipient: Recipient, mailing: Mailing) -> "RecipientAnswer":
        step = recipient.step
        return cls(
            subscriber_id=recipient.subscriber_id,
            channel=None if step is None or not mailing.steps else mailing.steps[step].channel,
            status=recipient.status,
            reason=recipient.reason and FailureReason(recipient.reason),
            error=recipient.error,
            attempts=recipient.attempts,
            message_id=recipient.message_id,
        )


class RecipientList(ResponseModel):
    """A page of recipients, those who subscribed last first."""

    data: list[RecipientAnswer] = Field(description="The recipients of this page.")
    next_cursor: NextCursor


class RecipientQuery(PageQuery):
    """Filters and paging."""

    status: RecipientStatus | None = Field(
        None, description="Only recipients with this status.", examples=["failed"]
    )
    reason: FailureReason | None = Field(
        None,
        description="Only recipients who did not get it for this reason.",
        examples=["user_blocked_bot"],
    )
