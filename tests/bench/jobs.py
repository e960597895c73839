"""Empty jobs against dramatiq's own, as findings."""

from tests.bench.empty_jobs import REFERENCE, Rates, measure
from tests.bench.report import Bound, Finding
from tests.bench.run import Run

#: Times what dramatiq alone does, by the names of the rates.
LEAST = {
    "embedded, sqlite": Bound(least=5),
    "embedded, postgresql": Bound(least=5),
    "woken by dramatiq, postgresql": Bound(least=4),
}

#: Rounds of the others for one of these: a round of so many jobs is long, and has little noise.
ROUNDS_FOR_ONE = 3


def jobs(run: Run) -> list[Finding]:
    """On whatever database and broker there is."""
    options = run.options
    run.tell("jobs: empty ones", total=1)
    rates = measure(
        run.new_folder(),
        jobs=options.jobs,
        rounds=max(1, options.rounds // ROUNDS_FOR_ONE),
        missing=run.progress.console.print,
    )
    return findings(rates)


def findings(rates: Rates) -> list[Finding]:
    """What could not be measured, for want of a server, has no value."""
    return [
        Finding(
            f"empty jobs, {name}: per s / dramatiq", rates.get(name), rates.get(REFERENCE), least
        )
        for name, least in LEAST.items()
    ]
