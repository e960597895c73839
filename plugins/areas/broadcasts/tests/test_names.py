"""What a sender calls a broadcast."""

import httpx2
import pytest

from msgsvc_devkit import RecordingChannel

from .conftest import AddPeople, ended, take


async def test_the_name_is_shown_in_lists_and_not_sent(
    client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(1)

    named = await take(client, name="  Spring\n sale\u202e ")
    unnamed = await take(client)
    shown = [await ended(client, each) for each in (named, unnamed)]
    listed = (await client.get("/v1/broadcast")).json()["data"]

    assert [each["name"] for each in shown] == ["Spring sale", None]
    assert {each["job_id"]: each["name"] for each in listed} == {
        named: "Spring sale",
        unnamed: None,
    }
    assert all("Spring" not in str(sent) for sent in channel.sent)


@pytest.mark.parametrize("name", ["", " \u200b ", "x" * 101, 7])
async def test_names_that_nobody_sees_or_that_are_long_are_refused(
    client: httpx2.AsyncClient, people: AddPeople, name: object
) -> None:
    await people(1)
    body = {"name": name, "text": "Hi", "audience": {"all": True}}

    refused = await client.post("/v1/broadcast", json=body)

    assert refused.status_code == 400
    assert "name" in refused.json()["error"]
