"""People imported from a CSV file: taken in, refused, reported, and imported again."""

import asyncio
import csv
import io
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import Capabilities, ChannelUser, Started
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import Conflict
from msgsvc_core.service import Service
from msgsvc_core.subscribers.imports import PeopleImports
from msgsvc_core.subscribers.imports.models import ImportParts, ImportRow
from msgsvc_core.subscribers.imports.parsing import PeopleFile
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import Subscribe
from tests.api.reading import events_named

CheckError = Callable[..., Any]

pytestmark = pytest.mark.both_databases

PATH = "/v1/people/imports"


@pytest.fixture(autouse=True)
def mail(service: Service) -> RecordingChannel:
    """`messenger_a` as a channel of email addresses; `messenger_b` stays a messenger."""
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.capabilities = Capabilities(addresses=True, identity="mailbox", buttons="pages")
    return channel


async def upload(
    client: httpx2.AsyncClient, content: str | bytes, **params: Any
) -> httpx2.Response:
    raw = content.encode() if isinstance(content, str) else content
    given = {"channel": "messenger_a", **params}
    return await client.post(
        PATH,
        data={name: value for name, value in given.items() if value is not None},
        files={"file": ("people.csv", raw, "text/csv")},
    )


async def imported(
    service: Service, client: httpx2.AsyncClient, content: str | bytes, **params: Any
) -> dict[str, Any]:
    """The import at its end."""
    answer = await upload(client, content, **params)
    assert answer.status_code == 202, answer.text
    await settled(service)
    found: dict[str, Any] = (await client.get(f"{PATH}/{answer.json()['import_id']}")).json()
    return found


def counts(found: dict[str, Any]) -> tuple[int, ...]:
    names = ("total", "added", "updated", "unchanged", "refused", "must_start")
    return tuple(found[name] for name in names)


async def report(client: httpx2.AsyncClient, found: dict[str, Any]) -> list[dict[str, str]]:
    answer = await client.get(f"{PATH}/{found['import_id']}/report")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))


async def people(client: httpx2.AsyncClient) -> dict[str, dict[str, Any]]:
    found = (await client.get("/v1/subscribers")).json()["data"]
    return {each["username"] or each["first_name"]: each for each in found}


async def test_people_are_added_with_what_the_file_says(
    service: Service, client: httpx2.AsyncClient
) -> None:
    await client.post("/v1/permissions", json={"key": "news", "title": "News"})
    done = await imported(
        service,
        client,
        "\ufeffexternal_id,address,first_name,language,tags,permissions,attributes,consent,Height\r\n"
        'u1,Ann@Example.com,Ann,ru-RU,"vip,new",news,"{""city"": ""Oslo""}",subscribed,170\r\n'
        "\r\n"
        "u2,ben@example.com,Ben,zh-Hant-TW,,,,,180\r\n",
    )

    assert (done["status"], done["progress"], counts(done)) == (
        "completed",
        1.0,
        (2, 2, 0, 0, 0, 0),
    )
    assert done["ignored_columns"] == ["Height"]
    assert done["columns"]["address"] == "address"
    assert await report(client, done) == []
    found = await people(client)
    ann, ben = found["ann@example.com"], found["ben@example.com"]
    assert (ann["first_name"], ann["lang"], ann["status"]) == ("Ann", "ru", "active")
    assert (ann["external_id"], ann["tags"]) == ("u1", ["new", "vip"])
    assert (ann["permissions"], ann["attributes"]) == (["news"], {"city": "Oslo"})
    assert (ann["locale"], ben["locale"]) == ("ru-RU", "zh-Hant-TW")
    assert (ben["lang"], ben["status"], ben["external_id"]) == ("en", "unsubscribed", "u2")
    events = (await client.get("/v1/events?event=subscription.created")).json()["data"]
    assert [(each["data"]["source"], each["data"]["external_id"]) for each in events] == [
        ("api", "u1")
    ]


async def test_the_same_file_again_changes_nothing(
    service: Service, client: httpx2.AsyncClient
) -> None:
    content = "external_id,address,tags,consent\nu1,ann@example.com,vip,subscribed\n"
    await imported(service, client, content)
    before = await people(client)
    again = await imported(service, client, content)

    assert counts(again) == (1, 0, 0, 1, 0, 0)
    assert await people(client) == before


async def test_who_is_known_gets_what_they_lack(
    service: Service, client: httpx2.AsyncClient
) -> None:
    await imported(service, client, "address,tags\nann@example.com,vip\n")
    more = 'address,tags,attributes,external_id\nann@example.com,new,"{""a"": 1}",u1\n'
    done = await imported(service, client, more)

    ann = (await people(client))["ann@example.com"]
    assert counts(done) == (1, 0, 1, 0, 0, 0)
    assert (ann["tags"], ann["attributes"], ann["external_id"]) == (["new", "vip"], {"a": 1}, "u1")


async def test_what_a_person_decided_stays(service: Service, client: httpx2.AsyncClient) -> None:
    content = "address,consent\nann@example.com,subscribed\nben@example.com,subscribed\n"
    await imported(service, client, content)
    ann = (await people(client))["ann@example.com"]
    await client.delete(f"/v1/subscribers/{ann['subscriber_id']}")
    done = await imported(
        service,
        client,
        "address,consent,language\nann@example.com,subscribed,ru\nben@example.com,no,ru\n",
    )

    found = await people(client)
    assert counts(done) == (2, 0, 0, 2, 0, 0)
    assert (found["ann@example.com"]["status"], found["ben@example.com"]["status"]) == (
        "unsubscribed",
        "active",
    )
    assert {each["lang"] for each in found.values()} == {"en"}
    assert [(each["line"], each["outcome"]) for each in await report(client, done)] == [
        ("2", "consent_kept"),
        ("3", "consent_kept"),
    ]


async def test_rows_are_refused_one_by_one_with_their_reasons(
    service: Service, client: httpx2.AsyncClient
) -> None:
    rows = (
        "ann@example.com,u1,,,,",
        "no address,u2,,,,",
        ",u3,,,,",
        "cid@example.com, ,nowhere,,,",
        'dan@example.com,u4,,"a b",,',
        "eve@example.com,u5,,,=1+1,",
        "fay@example.com,u1,,,,",
        "gus@example.com,u6,,,,not JSON",
        "hal@example.com,u7,,,,,further",
        "ann@example.com,u8,,,,",
        f"ian@example.com,{'u' * 129},,,,",
        "jan@example.com,u9,,vip,,",
    )
    header = "address,external_id,channel,tags,permissions,attributes\n"
    done = await imported(service, client, header + "\n".join(rows))
    said = {each["line"]: each["reason"] for each in await report(client, done)}

    assert counts(done) == (12, 2, 0, 0, 10, 0)
    assert sorted((await people(client)).keys()) == ["ann@example.com", "jan@example.com"]
    assert sorted(said, key=int) == [str(line) for line in range(3, 13)]
    assert said["3"].startswith("address: ")
    assert "no address" not in said["3"]
    assert said["4"] == "address: is empty"
    assert said["5"].startswith("channel: must be one of")
    assert said["6"].startswith("tags[0]: ")
    assert said["7"].startswith("permissions[0]: ")
    assert said["8"].startswith("external_id: another subscriber")
    assert said["9"] == "attributes: must be a JSON object"
    assert said["10"] == "the row has 7 cells, more than the header"
    assert said["11"].startswith("external_id: ")
    assert said["12"].startswith("external_id: must be 1-128")


async def test_a_report_has_no_cell_that_runs_as_a_formula(
    service: Service, client: httpx2.AsyncClient
) -> None:
    done = await imported(
        service, client, "address,permissions,channel\nann@example.com,nope,messenger_a\n"
    )
    answer = await client.get(f"{PATH}/{done['import_id']}/report")

    assert counts(done) == (1, 0, 0, 0, 1, 0)
    assert "nope" in answer.text
    for line in answer.text.splitlines()[1:]:
        assert line.rpartition(",")[2][:1] not in {"=", "+", "-", "@"}


async def test_a_dry_run_reports_and_stores_nobody(
    service: Service, client: httpx2.AsyncClient
) -> None:
    content = "address,consent,tags\nann@example.com,subscribed,vip\nwrong,,\n"
    done = await imported(service, client, content, dry_run="true")

    assert (done["dry_run"], counts(done)) == (True, (2, 1, 0, 0, 1, 0))
    assert [each["line"] for each in await report(client, done)] == ["3"]
    assert await people(client) == {}
    assert (await client.get("/v1/tags")).json()["data"] == []
    events = (await client.get("/v1/events")).json()["data"]
    assert [event["event"] for event in events] == ["import.finished"]


async def test_an_idempotency_key_is_bound_to_the_parameters_too(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    async def post(**params: str) -> httpx2.Response:
        return await client.post(
            PATH,
            data={"channel": "messenger_a", **params},
            files={"file": ("people.csv", b"address\nann@example.com\n", "text/csv")},
            headers={"Idempotency-Key": "the-same-key"},
        )

    tried, again = await post(dry_run="true"), await post(dry_run="true")

    assert (tried.status_code, again.json()) == (202, tried.json())
    check_error(await post(), 409, "idempotency_conflict")


async def test_columns_of_others_are_mapped(service: Service, client: httpx2.AsyncClient) -> None:
    done = await imported(
        service,
        client,
        "subscriberId;Email;firstName;locale\nu1;ann@example.com;Ann;ru\n",
        mapping=json.dumps(
            {
                "subscriberId": "external_id",
                "email": "address",
                "firstName": "first_name",
                "locale": "language",
            }
        ),
    )

    ann = (await people(client))["ann@example.com"]
    assert (ann["external_id"], ann["first_name"], ann["lang"]) == ("u1", "Ann", "ru")
    assert done["columns"] == {
        "external_id": "subscriberId",
        "address": "Email",
        "first_name": "firstName",
        "language": "locale",
    }


async def test_our_own_export_can_be_imported(service: Service, client: httpx2.AsyncClient) -> None:
    content = "address,first_name,external_id\nann@example.com,'=Ann,-u1\n"
    await imported(service, client, content)
    exported = (await client.get("/v1/subscribers/export")).text
    mapping = json.dumps({"username": "address", "locale": "language", "status": "consent"})
    again = await imported(service, client, exported, mapping=mapping, channel=None)

    assert (await people(client))["ann@example.com"]["first_name"] == "=Ann"
    assert counts(again) == (1, 0, 0, 1, 0, 0)


async def test_chats_of_another_bot_are_known_and_have_to_start_this_one(
    service: Service, client: httpx2.AsyncClient
) -> None:
    content = "address,first_name,external_id,consent\n1001,Ann,u1,subscribed\n-100,Group,,\n"
    done = await imported(service, client, content, channel="messenger_b", same_bot="true")
    said = await report(client, done)
    before = (await people(client))["Ann"]
    await client.post("/v1/send", json={"external_id": "u1", "text": "Hi"})
    await settled(service)
    link = await client.post("/v1/subscribers/links", json={})
    payload = link.json()["links"]["messenger_b"].partition("start=")[2]
    user = ChannelUser("1001", "Ann K", "annk", "en")
    start = Started(update_id="1", chat_id="1001", user=user, payload=payload)
    await service.inbound.receive("messenger_b", start)
    await settled(service)
    [after] = (await client.get("/v1/subscribers")).json()["data"]
    channel = service.channels["messenger_b"]

    assert counts(done) == (2, 1, 0, 0, 1, 1)
    assert [(each["line"], each["outcome"]) for each in said] == [
        ("2", "must_start"),
        ("3", "refused"),
    ]
    assert (before["status"], before["username"]) == ("unsubscribed", "")
    assert isinstance(channel, RecordingChannel)
    assert "Hi" not in channel.texts
    assert after["subscriber_id"] == before["subscriber_id"]
    assert (after["status"], after["external_id"], after["username"]) == ("active", "u1", "annk")


async def test_chats_of_ones_own_bot_are_reached_if_it_is_the_same(
    service: Service, client: httpx2.AsyncClient
) -> None:
    made = await client.post("/v1/channels", json={"name": "shop_bot", "plugin": "recording"})
    assert made.status_code == 201, made.text
    content = "address,external_id,consent\n1001,u1,subscribed\n1002,u2,\n"
    other = await imported(service, client, content, channel="shop_bot", dry_run="true")
    same = await imported(service, client, content, channel="shop_bot", same_bot="true")
    sent = await client.post("/v1/send", json={"external_id": "u1", "text": "Hi"})
    await settled(service)
    [message] = (await client.get("/v1/messages")).json()["data"]

    assert (counts(other)[-1], counts(same)) == (2, (2, 2, 0, 0, 0, 0))
    assert sent.status_code == 202, sent.text
    assert message["status"] == "sent"


@pytest.mark.parametrize(
    ("content", "params", "where"),
    [
        (b"\xff\xfeaddress\nann@example.com", {}, "file"),
        ("name\nAnn\n", {}, "file"),
        ("address\n", {}, "file"),
        ("", {}, "file"),
        ("address,address\na@example.com,b@example.com\n", {}, "file"),
        ("address\nann@example.com\n", {"mapping": "[1]"}, "mapping"),
        ("address\nann@example.com\n", {"mapping": '{"email": "address"}'}, "mapping"),
        ("address\nann@example.com\n", {"mapping": '{"address": "wallet"}'}, "mapping"),
        ("address\nann@example.com\n", {"consent": "maybe"}, "consent"),
        ("address\n" + "a@example.com\n" * 11, {}, "file"),
    ],
)
async def test_a_file_that_cant_be_read_is_refused_as_a_whole(
    service: Service,
    client: httpx2.AsyncClient,
    check_error: CheckError,
    content: str | bytes,
    params: dict[str, str],
    where: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service.get(PeopleImports), "_most_rows", 10)

    said = check_error(await upload(client, content, **params), 400, "validation_failed")
    assert said["error"].startswith(where)
    assert (await client.get(PATH)).json()["data"] == []


async def test_a_file_that_is_too_large_is_refused(
    service: Service, client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    service.get(PeopleImports).most_bytes = 100

    check_error(await upload(client, "address\n" + "a" * 100), 413, "payload_too_large")


async def test_one_import_runs_at_a_time_and_can_be_cancelled(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, check_error: CheckError
) -> None:
    project_id, query = tenant.project.project_id, ImportParts(channel="messenger_a")
    imports = service.get(PeopleImports)
    one = await imports.prepare(project_id, b"address\nann@example.com\n", query)
    other = await imports.prepare(project_id, b"address\nben@example.com\n", query)
    async with service.db.transaction() as tx:
        # Before its job can begin.
        first = await imports.start(tx, one)
        with pytest.raises(Conflict):
            await imports.start(tx, other)
        cancelled = await service.get(PeopleImports).cancel(tx, project_id, first.import_id)
    check_error(await client.post(f"{PATH}/{first.import_id}/cancel"), 409, "conflict")
    await settled(service)

    assert (first.status, cancelled.status) == ("running", "cancelled")
    assert await people(client) == {}
    done = await imported(service, client, "address\nben@example.com\n")
    listed = (await client.get(PATH, params={"limit": 1})).json()
    assert [each["import_id"] for each in listed["data"]] == [done["import_id"]]
    assert listed["next_cursor"]


async def test_nothing_of_a_file_is_readable_in_the_database_and_nothing_stays(
    service: Service, tenant: Tenant, clock: FakeClock
) -> None:
    content = b"address,permissions\nann@example.com,secret-word\n"
    query, project_id = ImportParts(channel="messenger_a"), tenant.project.project_id
    prepared = await service.get(PeopleImports).prepare(project_id, content, query)
    async with service.db.transaction() as tx:
        await service.get(PeopleImports).start(tx, prepared)
        [during] = await tx.fetch_all("SELECT content FROM core_import_slices")
    await settled(service)
    async with service.db.read() as tx:
        left = await tx.fetch_all("SELECT content FROM core_import_slices")
        [notes] = await tx.fetch_all("SELECT content FROM core_import_notes")
    clock.advance(31 * DAY_MS // 1000)
    await settled(service)
    async with service.db.read() as tx:
        kept = await tx.fetch_all("SELECT import_id FROM core_imports")
        kept += await tx.fetch_all("SELECT import_id FROM core_import_notes")

    assert "ann" not in during["content"]
    assert "secret-word" not in notes["content"]
    assert left == []
    assert kept == []


async def test_an_import_is_gone_with_its_project(service: Service, tenant: Tenant) -> None:
    project_id, query = tenant.project.project_id, ImportParts(channel="messenger_a")
    content = b"address\nann@example.com\n"
    prepared = await service.get(PeopleImports).prepare(project_id, content, query)
    async with service.db.transaction() as tx:
        await service.get(PeopleImports).start(tx, prepared)
        await tx.execute(
            "DELETE FROM core_projects WHERE project_id = :project_id",
            {"project_id": project_id},
        )
        left = [
            await tx.fetch_val(f"SELECT COUNT(*) FROM {table}")
            for table in ("core_imports", "core_import_slices", "core_import_notes")
        ]

    assert left == [0, 0, 0]


async def test_slices_are_taken_in_once_by_two_runners(
    service: Service,
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A job whose transaction failed takes in the same slice again: the rows are there once."""
    rows = "".join(f"p{number}@example.com,u{number}\n" for number in range(120))
    answer = await upload(client, f"address,external_id\n{rows}")
    taken_in = service.get(PeopleImports)._rows.take_in
    calls = 0

    async def failing(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        found = await taken_in(*arguments)
        if calls in {1, 3}:
            raise RuntimeError("the process ends here")
        return found

    monkeypatch.setattr(service.get(PeopleImports)._rows, "take_in", failing)
    assert isinstance(service.clock, FakeClock)
    for _ in range(3):
        await settled(service)
        service.clock.advance(3600)
    done = (await client.get(f"{PATH}/{answer.json()['import_id']}")).json()

    assert calls == 5
    assert (done["status"], counts(done)) == ("completed", (120, 120, 0, 0, 0, 0))
    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) FROM core_subscribers") == 120


async def test_a_null_character_refuses_its_row_alone(
    service: Service, client: httpx2.AsyncClient
) -> None:
    rows = (
        "address,external_id,tags\n"
        "ann@example.com,a\0b,x\nben@example.com,ben,y\0z\ncat@example.com,cat,new\n"
    )
    found = await imported(service, client, rows)

    assert (found["status"], found["added"], found["refused"]) == ("completed", 1, 2)


@pytest.mark.both_databases
async def test_a_cell_that_is_not_utf_8_refuses_its_row_alone(
    service: Service, client: httpx2.AsyncClient
) -> None:
    rows = "address,first_name\nann@example.com,Ann\njoerg@example.com,Jörg\n".encode("latin-1")
    found = await imported(service, client, rows)
    [refused] = await report(client, found)

    assert (found["status"], found["added"], found["refused"]) == ("completed", 1, 1)
    assert refused == {
        "line": "3",
        "outcome": "refused",
        "reason": "the row is not UTF-8: save the file in this encoding",
    }


async def test_a_cell_that_no_field_takes_refuses_its_row_alone(
    service: Service, client: httpx2.AsyncClient
) -> None:
    tags = (f'"{"t," * 200}"', "t" * 70_000, "new")
    rows = "address,tags\n" + "".join(f"{n}@example.com,{each}\n" for n, each in enumerate(tags))
    found = await imported(service, client, rows)
    said = {each["line"]: each["reason"] for each in await report(client, found)}

    assert (found["added"], found["refused"]) == (1, 2)
    assert said["2"] == "tags: names more than 200"
    assert said["3"] == "file: a cell is longer than 65536 characters"


@pytest.mark.parametrize("header", ["address," * 501, "address,address"])
async def test_a_header_has_no_end_of_columns(client: httpx2.AsyncClient, header: str) -> None:
    answer = await upload(client, f"{header}\nann@example.com\n")

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")


async def test_the_end_of_an_import_is_told_once_with_its_counts(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant
) -> None:
    content = "address\nann@example.com\nben@example.com\nnobody\n"
    tried = await imported(service, client, content, dry_run=True)
    done = await imported(service, client, content)
    query = ImportParts(channel="messenger_a")
    prepared = await service.get(PeopleImports).prepare(
        tenant.project.project_id, content.encode(), query
    )
    async with service.db.transaction() as tx:
        cancelled = await service.get(PeopleImports).start(tx, prepared)
        await service.get(PeopleImports).cancel(tx, tenant.project.project_id, cancelled.import_id)
    await settled(service)
    told = {event["import_id"]: event for event in await events_named(client, "import.finished")}

    assert set(told) == {tried["import_id"], done["import_id"], cancelled.import_id}
    assert told[tried["import_id"]]["dry_run"] is True
    assert (
        told[done["import_id"]].items()
        >= {
            "status": "completed",
            "dry_run": False,
            "code": None,
            "error": None,
            "total": 3,
            "added": 2,
            "updated": 0,
            "unchanged": 0,
            "refused": 1,
            "must_start": 0,
        }.items()
    )
    ended = told[cancelled.import_id]
    assert (ended["status"], ended["total"], ended["added"]) == ("cancelled", 3, 0)


async def test_others_write_while_a_file_is_read(
    service: Service, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = threading.Event(), threading.Event()
    slices = PeopleFile.slices

    def held(file: PeopleFile) -> Iterator[list[ImportRow]]:
        reading.set()
        assert go_on.wait(30)
        return slices(file)

    monkeypatch.setattr(PeopleFile, "slices", held)
    async with asyncio.TaskGroup() as group:
        started = group.create_task(upload(client, "address\nann@example.com\n"))
        assert await asyncio.to_thread(reading.wait, 30)
        try:
            written = await client.post("/v1/permissions", json={"key": "news", "title": "News"})
        finally:
            go_on.set()

    assert written.status_code == 201
    assert started.result().status_code == 202


async def test_a_repeated_request_gets_the_answer_of_the_first(
    service: Service, client: httpx2.AsyncClient
) -> None:
    files = {"file": ("people.csv", b"address\nann@example.com\n", "text/csv")}
    headers = {"Idempotency-Key": "import-one"}
    channel = {"channel": "messenger_a"}
    first = await client.post(PATH, data=channel, files=files, headers=headers)
    # The file would be refused now.
    service.get(PeopleImports).most_bytes = 10
    second = await client.post(PATH, data=channel, files=files, headers=headers)
    await settled(service)

    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json() == second.json()
    assert second.headers["Idempotent-Replayed"] == "true"
