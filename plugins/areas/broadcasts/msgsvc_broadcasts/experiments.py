"""Experiments: variants of a broadcast go to a part of its audience, and one of them to the rest."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from msgsvc_broadcasts.clicks import Clicks
from msgsvc_broadcasts.errors import WinnerAlreadyChosen
from msgsvc_broadcasts.models import SOURCE
from msgsvc_broadcasts.recent_figures import Counted, RecentFigures
from msgsvc_broadcasts.variants import BroadcastVariantAnswer, ChosenBy, Reason, decides_at_ms
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.jobs import Job, JobContext, JobSpec, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.mailings import Mailing
from msgsvc_core.mailings.models import PartOutcomes
from msgsvc_core.mailings.service import Mailings

DECIDE_JOB = "broadcasts.decide"

CHOSEN = "broadcast.winner_chosen"


class Experiments:
    """Compares the variants of broadcasts, and chooses winners. `service.get(Experiments)`."""

    def __init__(
        self, *, mailings: Mailings, clicks: Clicks, events: Events, jobs: JobQueue
    ) -> None:
        self._mailings = mailings
        self._clicks = clicks
        self._events = events
        self._jobs = jobs
        self._recent = RecentFigures[BroadcastVariantAnswer]()

    @property
    def spec(self) -> JobSpec:
        return JobSpec(DECIDE_JOB, self.decide)

    async def on_tested(self, tx: Tx, mailing: Mailing) -> None:
        """Plans the decision, when all variants were sent; a manual one waits for somebody."""
        due_ms = decides_at_ms(mailing)
        if mailing.source == SOURCE and due_ms is not None:
            await self._jobs.enqueue(
                tx,
                NewJob(
                    DECIDE_JOB,
                    {"job_id": mailing.job_id},
                    key=mailing.job_id,
                    project_id=mailing.project_id,
                    run_at_ms=due_ms,
                ),
            )

    async def decide(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Chooses the variant that most of those clicked who got it; without effect if there is a winner."""
        for job in jobs:
            async with ctx.completing(job) as tx:
                try:
                    mailing = await self._mailings.find(
                        tx, job.project_id or "", job.payload["job_id"]
                    )
                except NotFound:
                    continue
                figures = await self.figures(tx, mailing)
                winner, reason = best(figures)
                await self._choose(tx, mailing, winner, figures, "clicks", reason)

    async def choose(
        self,
        tx: Tx,
        project_id: str,
        job_id: str,
        variant: str,
        by: Literal["member", "api"],
    ) -> Mailing:
        """Sends the variant of that name to all who have got none, at once.

        Raises `NotFound`, `ValidationFailed` for an unknown name, `WinnerAlreadyChosen`, and `Conflict` for
        a broadcast that has ended, or has no second stage.
        """
        mailing = await self._mailings.find(tx, project_id, job_id)
        names = [each["name"] for each in mailing.variants]
        if mailing.source != SOURCE or mailing.stage is None:
            raise Conflict("it has no variants of which one goes to the rest of the audience")
        if variant not in names:
            raise ValidationFailed(
                "is none of its variants: {names}", field="variant", names=", ".join(names)
            )
        figures = await self.figures(tx, mailing)
        chosen = await self._choose(tx, mailing, names.index(variant), figures, by, None)
        if chosen is not None:
            return chosen
        now = await self._mailings.find(tx, project_id, job_id)
        if now.winner is not None:
            raise WinnerAlreadyChosen
        raise Conflict("it has ended, or is cancelled")

    async def figures(self, tx: Tx, mailing: Mailing) -> list[BroadcastVariantAnswer]:
        """What became of each variant, without those who got it as the winner. Once the recipients are no
        longer stored, what there was when the winner was chosen."""
        if mailing.purged_at_ms is not None and mailing.decision is not None:
            return [
                BroadcastVariantAnswer.of(
                    PartOutcomes(
                        each["name"],
                        sent=each["sent"],
                        failed=each["failed"],
                        total=each["sent"] + each["failed"],
                    ),
                    each["clicked"],
                    mailing.to_message(number),
                )
                for number, each in enumerate(mailing.decision["variants"])
            ]
        outcomes = await self._mailings.variant_outcomes(tx, mailing)
        clicked = await self._clicked(tx, mailing)
        return [
            BroadcastVariantAnswer.of(each, clicked[number], mailing.to_message(number))
            for number, each in enumerate(outcomes)
        ]

    async def recent_figures(
        self, tx: Tx, mailing: Mailing, now_ms: int
    ) -> Counted[BroadcastVariantAnswer]:
        """Figures for pages that poll; those of many recipients are kept for a while."""
        return await self._recent.get(mailing, now_ms, lambda: self.figures(tx, mailing))

    async def _clicked(self, tx: Tx, mailing: Mailing) -> Counter[int]:
        """How many people clicked in each variant."""
        clicked: Counter[int] = Counter()
        if mailing.experiment is None:
            return clicked
        async for people in self._clicks.people(tx, *mailing.key):
            clicked.update((await self._mailings.variants_sent_to(tx, mailing, people)).values())
        return clicked

    async def _choose(
        self,
        tx: Tx,
        mailing: Mailing,
        winner: int,
        figures: Sequence[BroadcastVariantAnswer],
        by: ChosenBy,
        reason: Reason | None,
    ) -> Mailing | None:
        """One conditional update, and the event; None if it comes too late."""
        compared = [each.compared() for each in figures]
        decision = {"by": by, "reason": reason, "variants": compared}
        chosen = await self._mailings.choose(tx, *mailing.key, winner, decision)
        if chosen is not None:
            await self._events.emit(
                tx,
                mailing.project_id,
                CHOSEN,
                {
                    "job_id": mailing.job_id,
                    "variant": figures[winner].name,
                    **decision,
                },
            )
        return chosen


def best(figures: Sequence[BroadcastVariantAnswer]) -> tuple[int, Reason]:
    """The number of the variant with the highest share of clicks, and why it is that one: the first of those
    that tie."""
    # Products and not quotients: equal shares are equal exactly.
    first = 0
    for number, each in enumerate(figures):
        if each.clicked * max(1, figures[first].sent) > figures[first].clicked * max(1, each.sent):
            first = number
    top = figures[first]
    if not top.clicked:
        return 0, "no_clicks"
    ties = [each for each in figures if each.clicked * top.sent == top.clicked * each.sent]
    return first, "tie" if len([each for each in ties if each.sent]) > 1 else "most_clicks"
