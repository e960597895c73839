"""Bodies that nobody should send, each answered with the envelope and nothing worse."""

import json
from collections.abc import AsyncIterator

import httpx2
import pytest

from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import RATE_HEADERS, CheckError, Subscribe

MIB = 1024 * 1024

# Nearly all of it is refused before a database is asked for anything but the key.
pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)

#: A send body with a hole for what is put into `metadata`.
WITH_METADATA = '{"subscriber_id": "sub_1", "text": "Hi", "metadata": %s}'

BAD_JSON = {
    "nothing": b"",
    "only spaces": b"  \n",
    "an open object": b'{"text": "Hi"',
    "a trailing comma": b'{"text": "Hi",}',
    "two values": b"{} {}",
    "single quotes": b"{'text': 'Hi'}",
    "a comment": b'{"text": "Hi"} // no',
    "two byte order marks": b'\xef\xbb\xbf\xef\xbb\xbf{"text": "Hi"}',
    "UTF-16": '{"text": "Hi"}'.encode("utf-16"),
    "invalid UTF-8": b'{"text": "\xff\xfe"}',
    "an overlong encoding": b'{"text": "\xc0\xaf"}',
    "a surrogate in UTF-8": b'{"text": "\xed\xa0\x80"}',
    "a raw NUL": b'{"text": "\x00"}',
    "a raw line feed in a text": b'{"text": "a\nb"}',
    "NaN": (WITH_METADATA % '{"n": NaN}').encode(),
    "Infinity": (WITH_METADATA % '{"n": Infinity}').encode(),
    "-Infinity": (WITH_METADATA % '{"n": -Infinity}').encode(),
    "a number beyond a double": (WITH_METADATA % '{"n": 1e999}').encode(),
    "a negative number beyond a double": (WITH_METADATA % '{"n": -1e999}').encode(),
    "an integer of 65 bits": (WITH_METADATA % f'{{"n": {2**63}}}').encode(),
    "a negative integer of 65 bits": (WITH_METADATA % f'{{"n": {-(2**63) - 1}}}').encode(),
    "an integer of 10,000 digits": (WITH_METADATA % f'{{"n": {"9" * 10_000}}}').encode(),
    "a name twice": b'{"subscriber_id": "sub_1", "text": "Hi", "text": "Ho"}',
    "a name twice, deep inside": (WITH_METADATA % '{"a": [{"b": 1, "b": 2}]}').encode(),
    "a name twice, once escaped": b'{"subscriber_id": "sub_1", "text": "Hi", "te\\u0078t": "Ho"}',
    "half a surrogate pair": (WITH_METADATA % r'{"a": "\ud800"}').encode(),
    "the other half": (WITH_METADATA % r'{"a": "\udfff"}').encode(),
    "half a surrogate pair in a name": (WITH_METADATA % r'{"\ud800": 1}').encode(),
    "an escaped NUL": (WITH_METADATA % r'{"a": "\u0000"}').encode(),
    "an escaped NUL in a name": (WITH_METADATA % r'{"\u0000": 1}').encode(),
    "33 levels": (WITH_METADATA % ("[" * 32 + "]" * 32)).encode(),
    "100,000 levels of arrays": (WITH_METADATA % ("[" * 100_000 + "]" * 100_000)).encode(),
    "100,000 levels of objects": (
        WITH_METADATA % ('{"a":' * 100_000 + "1" + "}" * 100_000)
    ).encode(),
    "100,000 open arrays": b"[" * 100_000,
}

WRONG_VALUES = {
    "nothing": ("", "body: is empty; "),
    "spaces alone": (" \n", "body: is empty; "),
    "null": ("null", "body: "),
    "an array": ("[]", "body: "),
    "a text": ('"Hi"', "body: "),
    "a number": ("1", "body: "),
    "no text": ('{"subscriber_id": "sub_1"}', "text: is required"),
    "an empty text": ('{"subscriber_id": "sub_1", "text": ""}', "text: "),
    "a number as text": ('{"subscriber_id": "sub_1", "text": 1}', "text: must be a valid string"),
    "null as text": ('{"subscriber_id": "sub_1", "text": null}', "text: "),
    "a text as boolean": (
        '{"subscriber_id": "sub_1", "text": "Hi", "silent": "yes"}',
        "silent: must be a valid boolean",
    ),
    "a number as boolean": ('{"subscriber_id": "sub_1", "text": "Hi", "silent": 1}', "silent: "),
    "a fraction as integer": (
        '{"subscriber_id": "sub_1", "text": "Hi", "expires_in": 60.5}',
        "expires_in: ",
    ),
    "a text as integer": (
        '{"subscriber_id": "sub_1", "text": "Hi", "expires_in": "60"}',
        "expires_in: ",
    ),
    "an unknown word": (
        '{"subscriber_id": "sub_1", "text": "Hi", "format": "bbcode"}',
        "format: ",
    ),
    "an unknown field": (
        '{"subscriber_id": "sub_1", "text": "Hi", "metdata": {}}',
        "metdata: there is no such field",
    ),
    "an unknown field deep inside": (
        '{"subscriber_id": "sub_1", "text": "Hi", "buttons": [[{"text": "A", "uri": "x"}]]}',
        "buttons[0][0].uri: there is no such field",
    ),
    "a wrong link beside another mistake": (
        '{"text": 1, "buttons": [[{"text": "A", "data": "a"}, {"text": "B", "url": "ftp:x"}]]}',
        "text: must be a valid string; buttons[0][1].url: must be an http or https URL",
    ),
    "zero-width characters as text": (
        '{"subscriber_id": "sub_1", "text": "\\u200b\\u2060 \\ufeff"}',
        "text: must hold more than spaces and invisible characters",
    ),
    "a blank text of a button": (
        '{"subscriber_id": "sub_1", "text": "Hi", "buttons": [[{"text": " ", "data": "a"}]]}',
        "buttons[0][0].text: must hold more than spaces and invisible characters",
    ),
    "an array as metadata": (WITH_METADATA % "[1]", "metadata: "),
}


@pytest.mark.shared_service
@pytest.mark.parametrize("body", BAD_JSON.values(), ids=BAD_JSON)
async def test_what_is_no_storable_json_is_validation_failed(
    client: httpx2.AsyncClient, check_error: CheckError, body: bytes
) -> None:
    answer = await client.post("/v1/send", content=body)

    check_error(answer, 400, "validation_failed")


async def test_a_byte_order_mark_is_left_out(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    found = json.dumps({"subscriber_id": await subscribe(), "text": "Hi"})
    answer = await client.post("/v1/send", content=b"\xef\xbb\xbf" + found.encode())

    assert answer.status_code == 202, answer.text


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity"])
async def test_a_compressed_body_is_called_by_its_name(
    client: httpx2.AsyncClient, check_error: CheckError, encoding: str
) -> None:
    headers = {"Content-Encoding": encoding}
    answer = await client.post("/v1/send", content=b"\x1f\x8b", headers=headers)

    if encoding == "identity":
        check_error(answer, 400, "validation_failed")
    else:
        error = check_error(answer, 415, "unsupported_media_type")["error"]
        assert error == "Content-Encoding: bodies must not be compressed"
        assert answer.headers["Accept-Encoding"] == "identity"


@pytest.mark.shared_service
@pytest.mark.parametrize(("body", "begins"), WRONG_VALUES.values(), ids=WRONG_VALUES)
async def test_a_wrong_value_is_named_by_its_path(
    client: httpx2.AsyncClient, check_error: CheckError, body: str, begins: str
) -> None:
    answer = await client.post("/v1/send", content=body)

    assert check_error(answer, 400, "validation_failed")["error"].startswith(begins)


async def test_every_refusal_of_a_body_carries_the_rate_headers(
    client: httpx2.AsyncClient,
) -> None:
    answers = [
        await client.post("/v1/send", content=b"{"),
        await client.post("/v1/send", json={}),
        await client.post("/v1/send", content=b"x" * (MIB + 1)),
        await client.post("/v1/send", content=b"{}", headers={"Content-Type": "text/plain"}),
        await client.post("/v1/send", content=b"{}", headers={"Content-Encoding": "gzip"}),
    ]

    assert [answer.status_code for answer in answers] == [400, 400, 413, 400, 415]
    assert all(name in answer.headers for answer in answers for name in RATE_HEADERS)


@pytest.mark.parametrize("name", ["dry_run", "x" * 5000])
async def test_what_stands_in_the_query_where_nothing_belongs_is_refused(
    client: httpx2.AsyncClient, check_error: CheckError, name: str
) -> None:
    send = await client.post("/v1/send", params={name: "true"}, json={"text": "Hi"})
    read = await client.get("/v1/project", params={name: "1"})

    for answer in (send, read):
        error = check_error(answer, 400, "validation_failed")["error"]
        assert "there is no such field" in error
        assert len(error) < 300


async def test_a_long_unknown_name_is_not_repeated_in_full(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    answer = await client.post("/v1/send", json={"x" * 100_000: 1})

    assert len(check_error(answer, 400, "validation_failed")["error"]) < 300


async def test_many_findings_are_not_listed_in_full(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    answer = await client.post("/v1/send", json={f"field_{n}": n for n in range(1000)})

    assert len(check_error(answer, 400, "validation_failed")["error"]) < 300


@pytest.mark.parametrize(
    "metadata",
    [
        json.loads("[" * 30 + "]" * 30),
        -(2**63),
        2**63 - 1,
        1.7976931348623157e308,
        "\U0001f600",
        "%s %d :name ' \" \\ ; -- \x7f",
    ],
    ids=["32 levels", "least integer", "greatest integer", "greatest double", "emoji", "signs"],
)
async def test_what_is_just_inside_comes_back_unchanged(
    client: httpx2.AsyncClient, subscribe: Subscribe, metadata: object
) -> None:
    subscriber_id = await subscribe()

    answer = await client.post(
        "/v1/send",
        json={"subscriber_id": subscriber_id, "text": "Hi", "metadata": {"value": metadata}},
    )

    assert answer.status_code == 202, answer.text
    message = await client.get(f"/v1/messages/{answer.json()['message_id']}")
    assert message.json()["metadata"] == {"value": metadata}


async def test_an_escaped_surrogate_pair_is_one_character(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, subscribe: Subscribe
) -> None:
    subscriber_id = await subscribe()
    body = f'{{"subscriber_id": "{subscriber_id}", "text": "\\ud83d\\ude00"}}'

    answer = await client.post("/v1/send", content=body)

    async with service.db.read() as tx:
        message = await service.messages.find(
            tx, tenant.project.project_id, answer.json()["message_id"]
        )
    assert message.content == OutgoingMessage("\U0001f600")


@pytest.mark.shared_service
@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "json",
        "",
    ],
)
async def test_a_body_of_another_type_is_a_bad_request(
    client: httpx2.AsyncClient, check_error: CheckError, content_type: str
) -> None:
    answer = await client.post(
        "/v1/send", content=b'{"text": "Hi"}', headers={"Content-Type": content_type}
    )

    assert "Content-Type" in check_error(answer, 400, "bad_request")["error"]


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "APPLICATION/JSON"])
async def test_json_may_be_named_in_any_way(
    client: httpx2.AsyncClient, check_error: CheckError, content_type: str
) -> None:
    answer = await client.post(
        "/v1/send", content=b'{"text": "Hi"}', headers={"Content-Type": content_type}
    )

    check_error(answer, 400, "validation_failed")


async def test_a_mebibyte_is_read_and_a_byte_more_is_too_large(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    within = await client.post("/v1/send", content=b" " * MIB)
    beyond = await client.post("/v1/send", content=b" " * (MIB + 1))

    check_error(within, 400, "validation_failed")
    check_error(beyond, 413, "payload_too_large")


async def test_a_body_without_a_length_is_counted_as_it_comes(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(10_000):
            yield b" " * 64 * 1024

    answer = await client.post("/v1/send", content=endless())

    check_error(answer, 413, "payload_too_large")


@pytest.mark.parametrize("length", ["99999999999", "9" * 5000])
async def test_a_declared_length_is_believed_before_anything_is_read(
    client: httpx2.AsyncClient, check_error: CheckError, length: str
) -> None:
    answer = await client.post("/v1/send", content=b"{}", headers={"Content-Length": length})

    check_error(answer, 413, "payload_too_large")
