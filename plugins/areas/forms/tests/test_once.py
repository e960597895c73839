"""A submission is kept, led on and told of in one transaction, and limits hold for calls at once."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from msgsvc_core.events import Event
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit import FakeClock, settled

from .conftest import WITH_FORMS, Desk
from .web import visiting


class Breaking:
    """A plugin that dies of the first submission, when all else of it is written."""

    def __init__(self) -> None:
        self.left = 1

    @hookimpl
    async def on_events(self, events: Sequence[Event]) -> None:
        if self.left and any(event.name == "form.submitted" for event in events):
            self.left -= 1
            raise RuntimeError("as if the process died here")


async def test_what_dies_before_its_commit_leaves_nothing_and_is_done_once_the_second_time(
    make_service: Any, make_tenant: Any, clock: FakeClock
) -> None:
    plugins = [*WITH_FORMS["extra_plugins"], ("breaking", Breaking())]
    service = await make_service(extra_plugins=plugins)
    desk = Desk(service, await make_tenant(service), clock)
    ann = await desk.person("Ann")
    form = await desk.form(
        rules=[{"to": {"kind": "subscriber", "subscriber_id": ann}}], min_fill_seconds=1
    )
    async with visiting(service) as visitor:
        await visitor.open(form)
        clock.advance(2)
        sent = {"name": "Cleo", "_token": visitor.token}
        died = await visitor.post(form, json=sent)
        await settled(service)
        before = (await desk.submissions(form), await desk.told(), desk.texts("Ann"))
        again = [await visitor.post(form, json=sent) for _ in range(2)]
    await settled(service)

    assert died.status_code == 500
    assert before == ([], [], [])
    assert [answer.status_code for answer in again] == [201, 201]
    assert len(await desk.submissions(form)) == 1
    assert len(await desk.told()) == 1
    assert desk.texts("Ann") == ["Contact\n\nName: Cleo"]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_ten_forms_are_the_most_also_of_calls_at_once(desk: Desk) -> None:
    calls = [desk.try_form(slug=f"form-{number}") for number in range(13)]

    answers = await asyncio.gather(*calls)

    assert Counter(answer.status_code for answer in answers) == {201: 10, 409: 3}


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_projects_that_take_a_slug_at_once_get_links_of_their_own(
    desk: Desk, make_tenant: Any
) -> None:
    others = [
        Desk(desk.service, await make_tenant(desk.service, f"Shop {n}"), desk.clock)
        for n in range(4)
    ]

    made = await asyncio.gather(*(each.try_form() for each in [desk, *others]))

    links = {answer.json()["links"]["messenger_a"] for answer in made}
    assert len(links) == 5
    assert sum(link.endswith("=form_contact") for link in links) == 1


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_changes_at_once_are_versions_one_after_another(desk: Desk) -> None:
    form = await desk.form()
    path = f"/v1/forms/{form['form_id']}"

    answers = await asyncio.gather(
        *(desk.client.patch(path, json={"title": f"T{number}"}) for number in range(5))
    )

    assert sorted(answer.json()["version"] for answer in answers) == [2, 3, 4, 5, 6]
