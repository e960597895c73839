"""When a logout token that could not be delivered is sent again."""

from dataclasses import dataclass

from msgsvc_oidc.backchannel_logout.models import DeliveryStatus, LogoutAttempt

#: Seconds after each failed attempt, some three hours in all. A client that comes back later than that finds
#: its session by its own rules.
WAITS_S = (2, 10, 60, 300, 1800, 7200)

#: Statuses that say "later", although they are 4xx: timeout, too early, throttled.
LATER_STATUSES = frozenset({408, 425, 429})

#: Seconds that a client's `Retry-After` can delay an attempt at most.
MAX_WAIT_S = 7200


@dataclass(frozen=True, slots=True)
class Verdict:
    """The status of a delivery after an attempt, and seconds to the next one."""

    status: DeliveryStatus
    after_s: float | None = None


def classify(attempt: LogoutAttempt, attempts: int) -> Verdict:
    """The verdict on the attempt of that number, from 1.

    A client answers 200, by some frameworks 204, and 400 for a token that it does not accept (Back-Channel
    Logout 1.0, section 2.8): the next one would be no better.
    """
    status = attempt.status_code
    if status is not None and 200 <= status < 300 and attempt.failure is None:
        return Verdict("delivered")
    refused = status is not None and 300 <= status < 500 and status not in LATER_STATUSES
    if refused or attempt.is_forbidden or attempts > len(WAITS_S):
        return Verdict("failed")
    wait_s = max(WAITS_S[attempts - 1], min(attempt.retry_after_s or 0, MAX_WAIT_S))
    return Verdict("pending", wait_s)
