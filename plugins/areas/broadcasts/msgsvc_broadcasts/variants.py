"""Variants of a broadcast in the API: how they are tried, and what became of each."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from msgsvc_core.api import examples
from msgsvc_core.api.as_given import AsGiven
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.types import Time
from msgsvc_core.kernel.clock import optional_rfc3339
from msgsvc_core.kernel.visible_text import check_visible, one_line
from msgsvc_core.mailings import Mailing
from msgsvc_core.mailings.models import (
    Failed,
    MailingMessageAnswer,
    MessageSource,
    PartOutcomes,
    Sent,
    Skipped,
    Unknown,
)
from msgsvc_core.mailings.service import ALL_PERCENT

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
    AfterValidator(one_line),
    AfterValidator(check_visible),
]
#: Who chose the winner.
ChosenBy = Annotated[
    Literal["clicks", "member", "api"],
    Field(
        description="`clicks` after `after_seconds`, a `member` in the dashboard, or a request to the `api`.",
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
ExperimentStatus = Literal["running", "scheduled", "pending", "completed", "cancelled"]
SHARE = "Percentage of the recipients who get the variants, each as many as the others."
AFTER = "Seconds from the end of the first stage until clicks decide; without effect on `manual`."
RULE = (
    "`clicks`: the variant that the largest share of its recipients clicked in; of equal ones the first."
    " `manual`: only `POST /v1/broadcast/{job_id}/winner` or the dashboard decides."
)


class BroadcastVariantBody(MessageSource):
    """A variant of the message; each recipient gets one of them."""

    name: VariantName | None = None


#: The fields of a variant that are those of a message.
VARIANT_CONTENT = set(MessageSource.model_fields)


class BroadcastExperimentBody(RequestModel):
    """How the variants are tried, and one is chosen for the rest."""

    share_percent: int = Field(
        20, ge=1, le=ALL_PERCENT, description=f"{SHARE} With 100 there is no rest.", examples=[20]
    )
    winner: Rule = Field("clicks", description=RULE)
    after_seconds: int = Field(3600, ge=300, le=7 * 24 * 3600, description=AFTER, examples=[3600])


def decides_at_ms(mailing: Mailing) -> int | None:
    """When clicks decide, in Unix milliseconds; None before the end of the first stage, and if they
    don't."""
    if mailing.experiment is None or mailing.tested_at_ms is None:
        return None
    terms = mailing.experiment["terms"]
    if terms["winner"] != "clicks":
        return None
    return mailing.tested_at_ms + int(terms["after_s"]) * 1000


class BroadcastExperimentAnswer(ResponseModel):
    """How the variants of a broadcast are tried, and which of them was chosen."""

    share_percent: int = Field(description=SHARE, examples=[20])
    winner: Rule = Field(description=RULE)
    after_seconds: int = Field(description=AFTER, examples=[3600])
    variants: list[str] = Field(description="The names of the variants.", examples=[["A", "B"]])
    status: ExperimentStatus = Field(
        description="`running` until all variants are sent. Then it waits: `scheduled` for the time at which"
        " clicks decide, `pending` for a choice. `completed` with a winner, or at the end without one;"
        " `cancelled` with the broadcast.",
        examples=["completed"],
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
    def of(cls, mailing: Mailing) -> "BroadcastExperimentAnswer | None":
        """None for a broadcast without variants."""
        if mailing.experiment is None:
            return None
        names = [each["name"] for each in mailing.variants]
        terms, decision = mailing.experiment["terms"], mailing.decision or {}
        return cls(
            share_percent=mailing.experiment["share_percent"],
            winner=terms["winner"],
            after_seconds=terms["after_s"],
            variants=names,
            status=_status(mailing),
            decides_at=optional_rfc3339(decides_at_ms(mailing)),
            chosen=None if mailing.winner is None else names[mailing.winner],
            chosen_by=decision.get("by"),
            chosen_at=optional_rfc3339(decision.get("at_ms")),
            reason=decision.get("reason"),
        )


def _status(mailing: Mailing) -> ExperimentStatus:
    if mailing.winner is not None:
        return "completed"
    if mailing.status == "cancelled":
        return "cancelled"
    if mailing.finished_at_ms is not None:
        return "completed"
    if mailing.stage != "waiting":
        return "running"
    return "pending" if decides_at_ms(mailing) is None else "scheduled"


class BroadcastVariantAnswer(ResponseModel):
    """A variant and its results. They exclude the people who got it as the winner."""

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
    def of(
        cls, outcomes: PartOutcomes, clicked: int, message: dict[str, Any]
    ) -> "BroadcastVariantAnswer":
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

    variants: list[BroadcastVariantAnswer] = Field(
        description="In the order of the request; empty for one message."
    )


class ChooseWinnerBody(RequestModel):
    """The winner of an experiment."""

    variant: str = Field(
        min_length=1, max_length=30, description="The variant's name.", examples=["B"]
    )
