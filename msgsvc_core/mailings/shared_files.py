"""The files that all recipients of a mailing share, which are checked before the first call."""

from collections.abc import Iterable

from msgsvc_core.channels.failures import DeliveryError
from msgsvc_core.channels.outbound.gate import OutboundGate
from msgsvc_core.channels.outbound.send_attempt import RetryPolicy, SendAttempt
from msgsvc_core.jobs.contract import Job
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.mailings.content import read_column
from msgsvc_core.mailings.deliveries import RecipientSender
from msgsvc_core.mailings.models import Mailing


class SharedFiles:
    """The checks of one run of a shard."""

    def __init__(
        self,
        *,
        clock: Clock,
        recipients: RecipientSender,
        retries: RetryPolicy,
        gate: OutboundGate,
        job: Job,
    ) -> None:
        self._clock = clock
        self._recipients = recipients
        self._retries = retries
        self._gate = gate
        self._job = job
        #: Why no recipient can get a content, e.g. a file that no messenger accepts.
        self.failures: dict[str, DeliveryError] = {}
        #: How often the check of a file was tried, for the next run.
        self.tries = 0

    async def check(self, mailing: Mailing) -> int | None:
        """When to check again, in Unix milliseconds; None if all checks have a final result."""
        retry_at_ms = None
        for content in _contents(mailing):
            retry_at_ms = await self._check(content) or retry_at_ms
        return retry_at_ms

    async def _check(self, content: str) -> int | None:
        check = await self._recipients.check_shared(read_column(content))
        if check is None or (check.done and check.failure is None):
            return None
        now_ms = self._clock.now_ms()
        if check.failure is None:
            return now_ms + round(check.retry_in_s * 1000)
        self.tries = self._job.payload["tries"] + 1
        attempt = SendAttempt(self._job, attempts=self.tries)
        attempt.failure = check.failure
        outcome = attempt.outcome(self._gate, self._retries, now_ms, repeatable=True)
        if outcome.is_final:
            self.failures[content] = check.failure
            return None
        return now_ms if outcome.retry_at_ms is None else outcome.retry_at_ms


def _contents(mailing: Mailing) -> Iterable[str]:
    contents = [mailing.content_of(None)]
    if mailing.stage != "rest":
        contents += [each["content"] for each in mailing.variants]
    return dict.fromkeys(contents)
