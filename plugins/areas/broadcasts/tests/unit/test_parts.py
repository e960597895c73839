"""The plugin's object, built from fakes."""

from dataclasses import replace
from itertools import count

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from msgsvc_broadcasts import plugin
from msgsvc_broadcasts.clicks import CLICKED, Clicks
from msgsvc_broadcasts.drafts import DraftTests
from msgsvc_broadcasts.errors import WinnerAlreadyChosen
from msgsvc_broadcasts.experiments import DECIDE_JOB, Experiments, best
from msgsvc_broadcasts.link_pages import LinkPages
from msgsvc_broadcasts.links import Links
from msgsvc_broadcasts.models import (
    SOURCE,
    BroadcastBody,
    BroadcastExperiment,
    BroadcastVariant,
    VariantFigures,
)
from msgsvc_broadcasts.recent_figures import MANY
from msgsvc_broadcasts.service import Broadcasts
from msgsvc_core.content.outgoing import Format, OutgoingMessage
from msgsvc_core.events import Event
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.mailings import Mailing
from msgsvc_core.mailings.content import read_column, to_column
from msgsvc_core.mailings.links import LinkToken, LinkTracking, link_id_of
from msgsvc_core.mailings.models import Audience, MailingMessage, PartOutcomes
from msgsvc_core.messages.templates.models import TemplateButton, TemplateContent
from msgsvc_core.projects.models import ProjectBody
from msgsvc_core.security import SecretBox
from msgsvc_devkit import plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeContext, FakeTx


def links_of(core: FakeContext) -> Links:
    return Links(
        clock=core.clock,
        mailings=core.mailings,
        subscribers=core.subscribers,
        events=core.events,
        tracking=LinkTracking(secrets=core.secrets, base_url="https://msgsvc.example"),
    )


def broadcasts_of(core: FakeContext) -> Broadcasts:
    return Broadcasts(
        mailings=core.mailings, events=core.events, projects=core.projects, links=links_of(core)
    )


async def test_a_dry_run_counts_and_prices_and_starts_nothing() -> None:
    core = plugin_context(plugin=plugin)
    core.subscribers.person("sub_1", lang="ru")
    core.subscribers.person("sub_2", lang="en")
    core.billing.prices["broadcast.message"] = 2
    broadcasts = broadcasts_of(core)
    body = BroadcastBody(text="Sale", audience=Audience(langs=["ru"]), dry_run=True)
    counted = await broadcasts.start(FakeTx(), PROJECT, body)

    assert (counted.total, counted.credits) == (1, 2)
    assert core.mailings.by_id == {}


async def test_only_the_end_of_a_broadcast_is_an_event() -> None:
    core = plugin_context(plugin=plugin)
    core.subscribers.person()
    broadcasts, tx = broadcasts_of(core), FakeTx()
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
    return VariantFigures.of(PartOutcomes("A", sent=sent), clicked, {"text": "Hi"})


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
    await broadcasts_of(core).start(tx, PROJECT, body, "job_1")
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


@pytest.mark.parametrize(("total", "times"), [(MANY - 1, 4), (MANY, 2)])
async def test_figures_of_many_recipients_are_counted_again_after_a_while_or_a_change(
    monkeypatch: pytest.MonkeyPatch, total: int, times: int
) -> None:
    core, tx = plugin_context(plugin=plugin), FakeTx()
    core.subscribers.person()
    clicks = Clicks(clock=core.clock, messages=core.messages, kept_days=90)
    experiments = Experiments(
        mailings=core.mailings, clicks=clicks, events=core.events, jobs=core.jobs
    )
    body = BroadcastBody(text="Hi", audience=Audience(all=True))
    await broadcasts_of(core).start(tx, PROJECT, body, "job_1")
    mailing = replace(await core.mailings.find(tx, PROJECT, "job_1"), total=total)
    ended = replace(mailing, status="completed")
    counted: list[str] = []

    async def figures(_tx: FakeTx, of: Mailing) -> list[VariantFigures]:
        counted.append(of.status)
        return []

    # Two seconds, so that they are kept for 200.
    monkeypatch.setattr(
        "msgsvc_broadcasts.recent_figures.time.perf_counter", count(step=2).__next__
    )
    monkeypatch.setattr(experiments, "figures", figures)
    for each, at_ms in ((mailing, 0), (mailing, 199_999), (ended, 199_999), (ended, 200_000)):
        await experiments.recent_figures(tx, each, at_ms)

    assert len(counted) == times
    await experiments.recent_figures(tx, mailing, 200_000)
    assert len(counted) == times + 1


async def test_links_of_a_broadcast_are_stored_where_the_project_tracks_them() -> None:
    core = plugin_context(plugin=plugin)
    core.subscribers.person()
    broadcasts, without, tx = broadcasts_of(core), FakeTx(), FakeTx()
    body = BroadcastBody(text="See https://shop.example/a.", audience=Audience(all=True))
    await broadcasts.start(without, PROJECT, body)
    await core.projects.update(tx, PROJECT, ProjectBody(link_tracking=True))
    await broadcasts.start(tx, PROJECT, body)

    assert "broadcasts_links" not in without.rows
    assert [row["url"] for row in tx.rows["broadcasts_links"]] == ["https://shop.example/a"]


@pytest.mark.parametrize("token", ["x", "0" * 44])
async def test_an_address_that_was_not_made_here_is_not_found(token: str) -> None:
    core = plugin_context(plugin=plugin)
    pages = LinkPages(db=core.db, limiter=core.limiter, links=links_of(core))
    scope = {"type": "http", "method": "GET", "headers": [], "path_params": {"token": token}}
    with pytest.raises(HTTPException) as refused:
        await pages.open(Request(scope))

    assert refused.value.status_code == 404


def test_an_address_is_read_back_by_who_has_the_key_alone() -> None:
    core = plugin_context(plugin=plugin)
    tracking = LinkTracking(secrets=core.secrets, base_url="https://msgsvc.example")
    column = to_column(
        TemplateContent(text="https://a.example"), {}, silent=False, tracks_links=True
    )
    plain = OutgoingMessage("https://a.example")
    sent = tracking.message_for("job_1", "sub_1", read_column(column), plain)
    token = sent.text.removeprefix("https://msgsvc.example/l/")
    other = LinkTracking(secrets=SecretBox(["x" * 32]), base_url="https://msgsvc.example")

    assert tracking.read(token) == LinkToken(link_id_of("job_1", "https://a.example"), "sub_1")
    with pytest.raises(NotFound):
        other.read(token)


@pytest.mark.parametrize("base_url", ["https://msgsvc.example", "http://localhost:8080"])
@pytest.mark.parametrize(
    ("text_format", "text"),
    [
        ("plain", "Now: https://a.example/x?a=1&b=2, or https://b.example"),
        ("html", '<b>Now</b>: <a href="https://a.example/x?a=1&amp;b=2">a</a> https://b.example'),
        ("markdown", "**Now**: [a](https://a.example/x?a=1&b=2), `https://b.example`"),
        ("plain", "No link at all"),
    ],
)
def test_a_message_for_many_has_the_addresses_that_one_alone_would_have(
    base_url: str, text_format: Format, text: str
) -> None:
    core = plugin_context(plugin=plugin)
    tracking = LinkTracking(secrets=core.secrets, base_url=base_url)
    rows = [
        [TemplateButton(text="Go", url="https://b.example"), TemplateButton(text="Yes", data="yes")]
    ]
    template = TemplateContent(text=text, format=text_format, buttons=rows)
    content = read_column(to_column(template, {}, silent=False, tracks_links=True))
    people = [core.subscribers.person(f"sub_{number}{'x' * 20}") for number in (1, 2)]
    links = core.subscribers.preferences
    shared = [content.message_for(each, "en", 4096, links) for each in people]
    alone = [content.render("en", "en", {}, 4096) for _ in people]
    given = zip(people, shared, alone, strict=True)
    made = [
        [tracking.message_for("job_1", who.subscriber_id, content, each) for each in messages]
        for who, *messages in given
    ]

    assert [one == other for one, other in made] == [True, True]
    assert (made[0][0] == made[1][0]) == (made[0][0] == shared[0])
    assert shared == alone
