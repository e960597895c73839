"""People imported on the dashboard, and the other addresses of one."""

import re

import pytest

from msgsvc_core.channels import Capabilities, ChannelUser
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory

PATH = "/subscribers/imports"


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    made = await make_service(extra_plugins=[("dashboard", plugin)])
    channel = made.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.capabilities = Capabilities(addresses=True, identity="mailbox", buttons="pages")
    return made


@pytest.fixture
async def owner(service: Service) -> Visitor:
    project = await service.projects.create("Shop")
    return await visitor(service, project.project_id)


async def test_a_file_is_imported_and_its_report_downloaded(
    service: Service, owner: Visitor
) -> None:
    content = b"address,consent\nann@example.com,subscribed\nnobody,\n"
    given = {"channel": "messenger_a", "consent": "unsubscribed"}
    started = await owner.post(PATH, given, files={"file": ("people.csv", content, "text/csv")})
    await settled(service)
    shown = await owner.get(PATH)
    [import_id] = set(re.findall(r"imp_\w+", shown.text))
    one = (await owner.get(f"{PATH}/{import_id}")).text
    report = (await owner.get(f"{PATH}/{import_id}/report")).text

    assert started.status_code == 303, started.text
    assert "Completed" in one
    assert re.search(r"<dt>Refused</dt>\s*<dd[^>]*>1<", one)
    assert report.splitlines()[1].startswith("3,refused,")
    assert "ann@example.com" in (await owner.get("/subscribers")).text


async def test_what_is_wrong_with_a_file_is_shown_beside_it(owner: Visitor) -> None:
    given = {"channel": "messenger_a", "consent": "unsubscribed"}
    wrong = {"file": ("people.csv", b"name\nAnn\n", "text/csv")}
    refused = await owner.post(PATH, given, files=wrong)
    without = await owner.post(PATH, given)

    assert refused.status_code == 400
    assert "must have a column" in refused.text
    assert "choose a file" in without.text


async def test_a_person_shows_their_other_addresses_and_can_be_split(
    service: Service, owner: Visitor
) -> None:
    ids = {}
    async with service.db.transaction() as tx:
        for channel, name in (("messenger_a", "Ann"), ("messenger_b", "Anna")):
            made = await service.subscribers.ensure(
                tx,
                owner.project_id,
                channel,
                ChannelUser(f"user-{name}", name, None, "en"),
                f"chat-{name}",
                source="api",
                external_id="u1",
            )
            ids[name] = made.subscriber_id
    html = (await owner.get(f"/subscribers/{ids['Ann']}")).text
    await owner.post(f"/subscribers/{ids['Anna']}/split", {})
    after = (await owner.get(f"/subscribers/{ids['Ann']}")).text

    assert "Other addresses" in html
    assert ids["Anna"] in html
    assert "Split off" in html
    assert ids["Anna"] not in after
    assert "Split off" not in after
