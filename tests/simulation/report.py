"""Tables of what a simulation showed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from rich.table import Table

from tests.simulation import bulk, stepped
from tests.simulation.invariants import quantile

NOTHING = "-"


def waits(values_s: Sequence[float]) -> str:
    if not values_s:
        return NOTHING
    return (
        f"{quantile(values_s, 0.5):.2f} / {quantile(values_s, 0.99):.2f} / {max(values_s):.2f} s"
        f" ({len(values_s):,})"
    )


def spread(values: Iterable[float]) -> str:
    found = [value for value in values if value == value]  # noqa: PLR0124 - without NaN
    if not found:
        return NOTHING
    return f"{min(found):.3f} / {fmean(found):.3f} / {max(found):.3f}"


def rate(messages: int, seconds: float) -> str:
    return f"{messages / seconds:,.0f}" if seconds else NOTHING


def table(singly: stepped.Figures | None, many: bulk.Figures | None) -> Table:
    """The figures of both parts side by side."""
    made = Table(title=f"seed {(singly or many).options.seed}")
    made.add_column("")
    made.add_column("singly", justify="right")
    made.add_column("in bulk", justify="right")

    def row(
        name: str,
        of_singly: Callable[[stepped.Figures], str] = lambda _: NOTHING,
        of_many: Callable[[bulk.Figures], str] = lambda _: NOTHING,
    ) -> None:
        made.add_row(
            name,
            NOTHING if singly is None else of_singly(singly),
            NOTHING if many is None else of_many(many),
        )

    row("messages", lambda f: f"{f.accepted:,}", lambda f: f"{f.messages:,}")
    row("of them stepped singly", lambda f: f"{f.accepted:,}", lambda f: f"{f.stepped:,}")
    row("virtual time", lambda f: f"{f.virtual_s:,.0f} s", lambda f: f"{f.virtual_s:,.0f} s")
    row("CPU time", lambda f: f"{f.took_s:.1f} s", lambda f: f"{f.took_s:.1f} s")
    row(
        "messages per CPU second",
        lambda f: rate(f.accepted, f.took_s),
        lambda f: f"{rate(f.messages, f.took_s)} ({rate(f.stepped, f.took_s)} stepped)",
    )
    made.add_section()
    row(
        "use of the bots' pace, min / mean / max",
        lambda f: spread(f.used.values()),
        lambda f: spread(f.used.values()),
    )
    row("the same while undisturbed", lambda f: spread(f.used_undisturbed.values()))
    row(
        "wait of a sign-in question, p50 / p99 / max",
        lambda f: waits(f.waits_s.get("question", [])),
        lambda f: waits(f.question_waits_s),
    )
    row(
        "the same while undisturbed",
        lambda f: waits(f.undisturbed_waits_s),
        lambda f: waits(f.undisturbed_waits_s),
    )
    row("wait of a single message", lambda f: waits(f.waits_s.get("single", [])))
    row("wait of a broadcast's recipient", lambda f: waits(f.waits_s.get("mailing", [])))
    row(
        "fairness of tenants (Jain), min / mean / max of the bots",
        lambda f: spread(f.fairness.values()),
    )
    made.add_section()
    row("answers 429, and retries after them", lambda f: f"{f.refusals}", lambda f: f"{f.refusals}")
    row("answers 5xx", lambda f: f"{f.failures}", lambda f: f"{f.events['failure']}")
    row("lost responses", lambda f: f"{f.lost_answers}", lambda f: f"{f.events['lost']}")
    row(
        "chats with several messages, in order",
        lambda f: f"{f.chats_in_order:,}",
        lambda f: f"{f.rows_in_order:,}",
    )
    row("processes killed", lambda f: f"{f.killed}", lambda f: f"{f.events['death']}")
    row(
        "lanes whose lease was lost, taken over after",
        lambda f: takeovers(f.takeovers_s),
        lambda f: takeovers(f.takeovers_s),
    )
    row("clock steps", lambda f: f"{f.clock_steps}", lambda f: f"{f.events['clock']}")
    row("bots added", lambda f: f"{f.bots_added}")
    row("outages of a platform", lambda f: f"{f.options.outages}")
    row("messages lost", lambda _: "0", lambda _: "0")
    row("messages shown twice without doubt", lambda _: "0", lambda _: "0")
    row("ended as unknown, their call in doubt", lambda f: f"{f.unknown}")
    row(
        "system messages repeated, their call in doubt",
        lambda f: f"{f.doubled}",
        lambda f: f"{f.repeated_in_doubt}",
    )
    return made


def takeovers(seconds: Sequence[float]) -> str:
    return f"{len(seconds)}, at most {max(seconds):.1f} s" if seconds else "0"


def by_bot(singly: stepped.Figures | None, many: bulk.Figures | None) -> Table:
    """The use of each bot's pace, and the fairness on it."""
    made = Table(title="use of each bot's pace")
    for name in ("bot", "singly", "undisturbed", "in bulk", "fairness (Jain)"):
        made.add_column(name, justify="left" if name == "bot" else "right")

    def shown(values: Mapping[str, float] | None, bot: str) -> str:
        found = None if values is None else values.get(bot)
        return NOTHING if found is None or found != found else f"{found:.3f}"  # noqa: PLR0124

    bots = sorted({*(singly.used if singly else ()), *(many.used if many else ())})
    for bot in bots:
        made.add_row(
            bot,
            shown(singly and singly.used, bot),
            shown(singly and singly.used_undisturbed, bot),
            shown(many and many.used, bot),
            shown(singly and singly.fairness, bot),
        )
    return made
