"""What the service holds in memory: idle, and after many messages."""

from collections.abc import Sequence

from tests.bench.report import Bound, Finding
from tests.bench.rounds import Target, one_round
from tests.bench.run import Run
from tests.bench.servers import Setup, memory_mib, started_service

MOST_IDLE_MIB, MOST_GROWTH_MIB = Bound(most=90), Bound(most=20)

#: Of the messages, what goes before the first look: caches and pools have their size by then.
FIRST_PART = 0.1


#: Seconds of the limiter's longest window. It keeps the time of every request in it, which with the
#: bench's limit is all of them; so a run that is long enough is looked at from there on.
WINDOW_S = 60.0


def memory(run: Run) -> list[Finding]:
    """On SQLite, delivering meanwhile; idle with every plugin that is loaded by default."""
    number = run.options.sends
    run.tell("memory: idle")
    by_default = Setup("sqlite", plugins=("sink", "sandbox", "auth", "otp", "webhooks"))
    with started_service(run, by_default) as service:
        idle = memory_mib(service.server)
    run.tell("memory", total=number)
    with started_service(run, Setup("sqlite")) as service:
        target = Target("sqlite", service.server, service.sends)
        sent, passed_s, looks = 0, 0.0, list[tuple[float, float]]()
        while sent < number:
            run.tell(f"memory: {sent:,} of {number:,} sent")
            load = one_round(run, target, run.options.seconds, lambda _: None)
            sent += load.requests
            passed_s += load.seconds
            run.advance(load.requests)
            if sent >= number * FIRST_PART:
                looks.append((passed_s, memory_mib(service.server)))
    return [
        Finding("memory, idle: MiB", idle, bound=MOST_IDLE_MIB, alone=True),
        Finding(
            f"memory, growth over {sent:,} sends: MiB",
            _growth(looks),
            bound=MOST_GROWTH_MIB,
            alone=True,
        ),
    ]


def _growth(looks: Sequence[tuple[float, float]]) -> float:
    """How far it rose above the first look, or above the first one behind the limiter's window."""
    settled = [mib for at_s, mib in looks if at_s >= WINDOW_S]
    long_enough = looks[-1][0] >= 2 * WINDOW_S
    counted = settled if long_enough else [mib for _, mib in looks]
    return max(counted) - counted[0]
