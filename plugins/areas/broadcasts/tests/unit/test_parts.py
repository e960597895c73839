"""The plugin's object, built from fakes."""

import pytest

from msgsvc_broadcasts import plugin
from msgsvc_broadcasts.clicks import CLICKED, Clicks
from msgsvc_broadcasts.drafts import DraftTests
from msgsvc_broadcasts.errors import WinnerAlreadyChosen
from msgsvc_broadcasts.experiments import DECIDE_JOB, Experiments, best
from msgsvc_broadcasts.models import (
    SOURCE,
    BroadcastBody,
    BroadcastExperiment,
    BroadcastVariant,
    VariantFigures,
)
from msgsvc_broadcasts.service import Broadcasts
from msgsvc_core.events import Event
from msgsvc_core.mailings.models import Audience, MailingMessage, VariantOutcomes
from msgsvc_devkit import plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx


async def test_a_dry_run_counts_and_prices_and_starts_nothing() -> None:
    core = plugin_context(plugin=plugin)
    core.subscribers.person("sub_1", lang="ru")
    core.subscribers.person("sub_2", lang="en")
    core.billing.prices["broadcast.message"] = 2
    broadcasts = Broadcasts(mailings=core.mailings, events=core.events)
    body = BroadcastBody(text="Sale", audience=Audience(langs=["ru"]), dry_run=True)
    counted = await broadcasts.start(FakeTx(), PROJECT, body)

    assert (counted.total, counted.credits) == (1, 2)
    assert core.mailings.by_id == {}


async def test_only_the_end_of_a_broadcast_is_an_event() -> None:
    core = plugin_context(plugin=plugin)
    core.subscribers.person()
    broadcasts, tx = Broadcasts(mailings=core.mailings, events=core.events), FakeTx()
    body = BroadcastBody(text="Sale", audience=Audience(all=True))
    await broadcasts.start(tx, PROJECT, body, "job_1")
    ended = await core.mailings.cancel(tx, PROJECT, "job_1")
    await broadcasts.emit_finished(tx, ended)

    assert ended.source == SOURCE
    assert core.events.names == ["broadcast.cancelled"]


async def test_a_test_is_a_message_to_one_and_no_mailing() -> None:
    core = plugin_context(plugin=plugin)
    core.subscribers.person("sub_1", first_name="Anna")
    drafts = DraftTests(
        mailings=core.mailings,
        messages=core.messages,
        subscribers=core.subscribers,
        billing=core.billing,
    )
    draft = MailingMessage(text="Hi {{ first_name }}", silent=True)
    message = await drafts.send(FakeTx(), PROJECT, draft, "sub_1")

    assert (message.subscriber_id, message.job_id) == ("sub_1", None)
    assert (message.content.text, message.content.silent) == ("Hi Anna", True)
    assert core.mailings.by_id == {}


async def test_presses_on_messages_of_no_broadcast_are_not_recorded() -> None:
    core, tx = plugin_context(plugin=plugin), FakeTx()
    clicks = Clicks(clock=core.clock, messages=core.messages, kept_days=90)
    data = {"message_id": "msg_gone", "data": "yes"}
    await clicks.on_events(tx, [Event("evt_1", PROJECT, CLICKED, data, 1)])
    await clicks.on_events(tx, [Event("evt_2", PROJECT, "delivery.success", {}, 1)])

    assert tx.statements == []
    assert [spec.name for spec in clicks.specs()] == ["broadcasts.purge"]


def compared(sent: int, clicked: int) -> VariantFigures:
    return VariantFigures.of(VariantOutcomes("A", sent=sent), clicked, {"text": "Hi"})


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ([(10, 1), (10, 3)], (1, "most_clicks")),
        # A larger share of fewer people.
        ([(100, 20), (10, 3)], (1, "most_clicks")),
        ([(10, 2), (5, 1)], (0, "tie")),
        ([(10, 1), (3, 1), (9, 3)], (1, "tie")),
        ([(10, 0), (0, 0)], (0, "no_clicks")),
        ([(0, 0), (10, 1)], (1, "most_clicks")),
        ([(10, 1), (0, 0)], (0, "most_clicks")),
    ],
)
def test_the_largest_share_of_clicks_wins(
    figures: list[tuple[int, int]], expected: tuple[int, str]
) -> None:
    assert best([compared(*each) for each in figures]) == expected


async def test_a_manual_experiment_plans_no_decision_and_takes_one_choice() -> None:
    core, tx = plugin_context(plugin=plugin), FakeTx(answers=[[]])
    core.subscribers.person()
    clicks = Clicks(clock=core.clock, messages=core.messages, kept_days=90)
    experiments = Experiments(
        mailings=core.mailings, clicks=clicks, events=core.events, jobs=core.jobs
    )
    body = BroadcastBody(
        variants=[BroadcastVariant(text="Hi"), BroadcastVariant(text="Ho")],
        experiment=BroadcastExperiment(winner="manual"),
        audience=Audience(all=True),
    )
    await Broadcasts(mailings=core.mailings, events=core.events).start(tx, PROJECT, body, "job_1")
    mailing = await core.mailings.find(tx, PROJECT, "job_1")
    await core.mailings.complete(tx, mailing)
    [tested] = core.mailings.tested
    await experiments.on_tested(tx, tested)
    chosen = await experiments.choose(tx, PROJECT, "job_1", "B", "api")
    with pytest.raises(WinnerAlreadyChosen):
        await experiments.choose(FakeTx(answers=[[]]), PROJECT, "job_1", "A", "api")

    assert DECIDE_JOB not in [job.name for job in core.jobs.enqueued]
    assert (chosen.winner, chosen.stage) == (1, "rest")
    assert core.events.names == ["broadcast.winner_chosen"]
