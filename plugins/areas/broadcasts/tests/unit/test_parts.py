"""Rules of broadcasts, experiments and tracked links, on a database in memory."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count

import pytest

from msgsvc_broadcasts.clicks import CLICKED, Clicks
from msgsvc_broadcasts.drafts import DraftTests
from msgsvc_broadcasts.experiments import Experiments, best
from msgsvc_broadcasts.models import CreateBroadcastBody
from msgsvc_broadcasts.recent_figures import MANY
from msgsvc_broadcasts.service import Broadcasts
from msgsvc_broadcasts.variants import BroadcastVariantAnswer
from msgsvc_core.content.outgoing import Format, OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.events import Event
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.mailings import Mailing, NewMailing
from msgsvc_core.mailings.audience import Audience
from msgsvc_core.mailings.content import read_column, to_column
from msgsvc_core.mailings.links import LinkToken, LinkTracking, link_id_of
from msgsvc_core.mailings.models import MailingMessage, PartOutcomes
from msgsvc_core.messages.templates.models import TemplateButton, TemplateContent
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.security import SecretBox
from msgsvc_devkit.core import PROJECT, MemoryCore, memory_core

SALE = CreateBroadcastBody(text="Sale", audience=Audience(all=True))


class Prices:
    """A billing plugin with one price, of 2 credits."""

    @hookimpl
    async def quote(self, tx: Tx, project_id: str, operation: str) -> int:
        return 2 if operation == "broadcast.message" else 0


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    async with memory_core(plugins=["broadcasts"], extra_plugins=[("prices", Prices())]) as core:
        yield core


async def test_a_dry_run_counts_and_prices_and_starts_nothing(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx, "sub_1", lang="ru")
    await core.person(tx, "sub_2", lang="en")
    body = SALE.model_copy(update={"audience": Audience(langs=["ru"]), "dry_run": True})
    counted = await core.get(Broadcasts).start(tx, PROJECT, body)

    assert (counted.total, counted.credits) == (1, 2)
    assert await core.mailings.list_any(tx, ended=False, limit=1) == []
    assert await core.pending_jobs(tx) == []


async def test_only_the_end_of_a_broadcast_is_an_event(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx)
    await core.get(Broadcasts).start(tx, PROJECT, SALE, "job_1")
    message = MailingMessage(text="Not of the plugin")
    new = NewMailing("another", message, Audience(all=True), job_id="job_2")
    other = await core.mailings.start(tx, PROJECT, new)
    before = core.event_names[:]
    await core.mailings.cancel(tx, PROJECT, "job_1")
    await core.mailings.cancel(tx, PROJECT, other.job_id)

    assert before == []
    assert [(each.name, each.data["job_id"]) for each in core.emitted] == [
        ("broadcast.cancelled", "job_1")
    ]


async def test_a_test_is_a_message_to_one_and_no_mailing(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx)
    draft = MailingMessage(text="Hi {{ first_name }}", silent=True)
    message = await core.get(DraftTests).send(tx, PROJECT, draft, "sub_1")

    assert (message.subscriber_id, message.job_id) == ("sub_1", None)
    assert (message.content.text, message.content.silent) == ("Hi Anna", True)
    assert await core.mailings.list_any(tx, ended=False, limit=1) == []


async def test_presses_on_messages_that_are_gone_are_not_recorded(core: MemoryCore, tx: Tx) -> None:
    data = {"message_id": "msg_gone", "data": "yes"}
    events = [
        Event("evt_1", PROJECT, CLICKED, data, 1),
        Event("evt_2", PROJECT, "delivery.success", {}, 1),
    ]
    await core.get(Clicks).on_events(tx, events)

    assert await tx.fetch_all("SELECT * FROM broadcasts_clicks") == []


def compared(sent: int, clicked: int) -> BroadcastVariantAnswer:
    return BroadcastVariantAnswer.of(PartOutcomes("A", sent=sent), clicked, {"text": "Hi"})


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


@pytest.mark.parametrize(("total", "times"), [(MANY - 1, 4), (MANY, 2)])
async def test_figures_of_many_recipients_are_counted_again_after_a_while_or_a_change(
    core: MemoryCore, tx: Tx, monkeypatch: pytest.MonkeyPatch, total: int, times: int
) -> None:
    experiments = core.get(Experiments)
    await core.get(Broadcasts).start(tx, PROJECT, SALE, "job_1")
    mailing = replace(await core.mailings.find(tx, PROJECT, "job_1"), total=total)
    ended = replace(mailing, status="completed")
    counted: list[str] = []

    async def figures(_tx: Tx, of: Mailing) -> list[BroadcastVariantAnswer]:
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


def test_an_address_is_read_back_by_who_has_the_key_alone(core: MemoryCore) -> None:
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
async def test_a_message_for_many_has_the_addresses_that_one_alone_would_have(
    core: MemoryCore, tx: Tx, base_url: str, text_format: Format, text: str
) -> None:
    tracking = LinkTracking(secrets=core.secrets, base_url=base_url)
    rows = [
        [TemplateButton(text="Go", url="https://b.example"), TemplateButton(text="Yes", data="yes")]
    ]
    template = TemplateContent(text=text, format=text_format, buttons=rows)
    content = read_column(to_column(template, {}, silent=False, tracks_links=True))
    people = [await core.person(tx, f"sub_{number}{'x' * 20}") for number in (1, 2)]
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
