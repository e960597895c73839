"""Parts of the core one by one, built from fakes."""

import pytest

from msgsvc_core.events.tracked import TrackBody, TrackedEvents
from msgsvc_core.files.purging import FilePurge
from msgsvc_core.kernel.clock import HOUR_MS
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.projects.models import ProjectBody
from msgsvc_core.subscribers.greetings import Greetings
from msgsvc_devkit import plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, FakeTx


async def test_a_project_welcomes_in_its_own_words() -> None:
    core, tx = plugin_context(), FakeTx()
    greetings = Greetings(texts=core.texts, outbox=core.outbox, projects=core.projects)
    welcome = ProjectBody(welcome={"en": "Hi {{ first_name }}!", "ru": "Привет от {{ project }}!"})
    await core.projects.update(tx, PROJECT, welcome)
    await greetings.welcome(tx, core.subscribers.person(lang="ru"), "deep_link")

    assert core.outbox.texts == ["Привет от Shop!"]


async def test_a_sign_in_is_not_confirmed_twice_and_a_mini_app_not_at_all() -> None:
    core, tx = plugin_context(), FakeTx()
    greetings = Greetings(texts=core.texts, outbox=core.outbox, projects=core.projects)
    await greetings.welcome(tx, core.subscribers.person(), "auth")
    await greetings.welcome(tx, core.subscribers.person(), "mini_app")

    assert core.outbox.sent == []


async def test_what_a_person_did_is_an_event_of_limited_size() -> None:
    core = plugin_context()
    find = core.subscribers.get_by_identifier
    tracked = TrackedEvents(events=core.events, find_subscriber=find, max_bytes=20)
    core.subscribers.person()
    body = TrackBody(subscriber_id="sub_1", name="cart", properties={"n": 1})
    await tracked.track(FakeTx(), PROJECT, body)

    assert core.events.emitted[0].data["properties"] == {"n": 1}
    with pytest.raises(ValidationFailed, match="properties"):
        too_large = body.model_copy(update={"properties": {"n": "x" * 20}})
        await tracked.track(FakeTx(), PROJECT, too_large)


async def test_files_that_nobody_kept_are_removed_after_their_hours() -> None:
    core = plugin_context()
    core.db.answers += [0, 0]
    purge = FilePurge(clock=core.clock, loose_hours=24)
    await purge.purge(FakeJobContext(core.db), [])

    assert core.clock.now_ms() - 24 * HOUR_MS in core.db.statements[-1][1].values()
