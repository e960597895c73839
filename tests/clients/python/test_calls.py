"""Calls of the Python client: repeats, idempotency keys, deadlines, errors, and what is sent."""

import json
import pickle
import traceback
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from typing import Any

import pytest

import msgsvc_client
from msgsvc_client import (
    ApiError,
    AsyncClient,
    ConnectFailed,
    ConnectionBroken,
    InvalidResponse,
    RequestTimeout,
    RetryPolicy,
    errors,
)
from tests.clients.python.fakes import API_KEY, Answer, Stage, Step, refusal, stage

SENT = Answer(202, {"message_id": "msg_1", "status": "queued", "new_field": 1})


async def send(made: Stage, **more: Any) -> Any:
    return await made.client.messages.send(external_id="ann-1", text="Hello", **more)


async def test_a_call_is_sent_as_the_api_takes_it() -> None:
    made = stage(SENT)

    sent = await made.client.messages.send(
        external_id="ann-1", text="Привет", buttons=[[{"text": "Open", "url": "https://a.example"}]]
    )

    (request,) = made.transport.requests
    assert (request.method, request.url) == ("POST", "https://msgsvc.example/v1/send")
    assert json.loads(request.content or b"") == {
        "external_id": "ann-1",
        "text": "Привет",
        "buttons": [[{"text": "Open", "url": "https://a.example"}]],
    }
    assert request.headers["Authorization"] == f"Bearer {API_KEY}"
    assert request.headers["User-Agent"].startswith(
        f"msgsvc-client-python/{msgsvc_client.__version__} (Python 3."
    )
    assert sent.message_id == "msg_1"


async def test_unknown_fields_of_an_answer_are_ignored_and_stay_reachable() -> None:
    sent = await send(stage(SENT))

    assert sent.raw["new_field"] == 1
    assert not hasattr(sent, "new_field")


async def test_answers_are_values() -> None:
    first, second = [await send(stage(SENT)) for _ in range(2)]
    other = await send(stage(Answer(202, {"message_id": "msg_2", "status": "queued"})))

    assert first == second != other
    assert len({first, second, other}) == 2
    assert repr(first) == "QueuedMessage(message_id='msg_1', status='queued')"
    with pytest.raises(FrozenInstanceError):
        first.status = "sent"


async def test_parameters_are_escaped_and_those_left_out_are_not_sent() -> None:
    made = stage(Answer(200, {"data": [], "next_cursor": None}), Answer(204, b""))

    moment = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    await made.client.subscribers.list(tag="a&b", created_after=moment).first_page()
    await made.client.tags.delete("a/b?")

    assert made.transport.requests[0].url.endswith(
        "/v1/subscribers?created_after=2026-03-01T09%3A30%3A00%2B00%3A00&tag=a%26b"
    )
    assert made.transport.requests[1].url.endswith("/v1/tags/a%2Fb%3F")


@pytest.mark.parametrize("value", ["", ".", ".."])
async def test_an_id_that_would_be_another_path_is_refused(value: str) -> None:
    made = stage(Answer(204, b""))

    with pytest.raises(ValueError, match="path parameter"):
        await made.client.tags.delete(value)
    assert made.transport.requests == []


async def test_a_time_without_a_zone_is_refused() -> None:
    made = stage(SENT)

    with pytest.raises(ValueError, match="time zone"):
        await made.client.broadcasts.create(
            audience={"all": True},
            text="Hi",
            send_at=datetime(2026, 3, 1),  # noqa: DTZ001 # that is what is refused
        )


@pytest.mark.parametrize(
    "failure",
    [
        refusal(500, "internal_error"),
        refusal(503, "unavailable"),
        Answer(502, b"<html>"),
        ConnectFailed("refused"),
        ConnectionBroken("reset"),
        RequestTimeout("late"),
        Answer(202, {"message_id": "msg_0"}, broken=ConnectionBroken("in the middle")),
    ],
)
async def test_a_post_is_repeated_with_the_same_key_and_body(failure: Step) -> None:
    made = stage(failure, SENT)

    sent = await send(made)

    first, second = made.transport.requests
    assert sent.message_id == "msg_1"
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]
    assert first.content == second.content
    assert len(made.clock.slept) == 1


async def test_every_call_has_a_key_of_its_own_unless_one_is_given() -> None:
    made = stage(SENT)

    for key in (None, None, "order-4711-sent"):
        await send(made, idempotency_key=key)

    keys = [request.headers["Idempotency-Key"] for request in made.transport.requests]
    assert len(set(keys)) == 3
    assert keys[2] == "order-4711-sent"
    with pytest.raises(ValueError, match="idempotency_key"):
        await send(made, idempotency_key="short")


async def test_an_upload_is_repeated_byte_for_byte() -> None:
    file: dict[str, object] = {"file_id": "fil_1"}
    file |= {"subscriber_id": None, "type": "image", "filename": "a.png"}
    file |= {"mime_type": "image/png", "size": 3, "status": "pending", "reason": None}
    file |= {"url": None, "url_expires_at": None, "created_at": "2026-03-01T09:30:00.000Z"}
    made = stage(ConnectionBroken("reset"), Answer(201, file))

    uploaded = await made.client.files.upload(b"\x89PN", filename='ä "b\\c".png', type="document")

    first, second = made.transport.requests
    assert uploaded.file_id == "fil_1"
    assert first.content == second.content
    assert first.headers["Content-Type"] == second.headers["Content-Type"]
    assert 'filename="ä _b_c_.png"'.encode() in (first.content or b"")
    assert b'form-data; name="type"\r\n\r\ndocument\r\n--' in (first.content or b"")
    assert first.url.endswith("/v1/files")


async def test_waits_double_up_to_their_limit() -> None:
    made = stage(refusal(503, "unavailable"), max_attempts=7, max_wait_s=4.0)

    with pytest.raises(errors.Unavailable) as caught:
        await send(made)

    assert made.clock.slept == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert caught.value.attempts == 7


def test_a_wait_is_drawn_between_half_of_the_limit_and_all_of_it() -> None:
    policy = RetryPolicy()

    waits = [policy.wait_s(3, None) for _ in range(200)]

    assert all(1.0 <= wait <= 2.0 for wait in waits)
    assert len(set(waits)) > 100


@pytest.mark.parametrize(("share", "seconds"), [(0.0, 11.75), (1.0, 23.5)])
async def test_a_call_outlasts_a_restart_of_ten_seconds_by_default(
    share: float, seconds: float
) -> None:
    made = stage(ConnectFailed("refused"), uniform=lambda low, high: low + share * (high - low))

    with pytest.raises(ConnectFailed):
        await send(made)

    assert len(made.transport.requests) == 7
    assert sum(made.clock.slept) == seconds


@pytest.mark.parametrize("value", ["7", "Thu, 01 Jan 1970 00:00:00 GMT", "soon"])
async def test_retry_after_is_the_least_wait(value: str) -> None:
    made = stage(refusal(429, "rate_limit_project", retry_after=value), SENT)

    await send(made)

    assert made.clock.slept == [7.5 if value == "7" else 0.5]


async def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    made = stage(refusal(429, "rate_limit_project", retry_after="50"), deadline_s=40.0)

    with pytest.raises(errors.RateLimitProject) as caught:
        await send(made)

    assert made.clock.slept == []
    assert caught.value.retry_after_s == 50
    assert caught.value.retryable


async def test_no_try_may_take_longer_than_what_is_left() -> None:
    made = stage(Answer(503, b"", takes_s=33.0), RequestTimeout("late"), deadline_s=40.0)

    with pytest.raises(RequestTimeout):
        await send(made)

    assert made.transport.timeouts[:2] == [30.0, 6.5]


async def test_a_body_that_trickles_in_ends_at_the_deadline() -> None:
    made = stage(Answer(202, SENT.body, pause_s=61.0))

    with pytest.raises(RequestTimeout, match="not there in time"):
        await send(made)

    assert made.transport.closed == 1


async def test_the_answer_to_what_took_long_to_send_is_read() -> None:
    made = stage(Answer(202, SENT.body, takes_s=70.0, pause_s=5.0))

    assert (await send(made)).message_id == "msg_1"


async def test_an_error_survives_its_way_between_processes() -> None:
    with pytest.raises(errors.NotFound) as caught:
        await send(stage(refusal(404, "not_found")))

    restored = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 # our own
    assert type(restored) is errors.NotFound
    assert vars(restored) == vars(caught.value)
    assert str(restored) == str(caught.value)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 409, 413])
async def test_what_will_not_succeed_is_not_repeated(status: int) -> None:
    made = stage(refusal(status, "some_new_code"))

    with pytest.raises(ApiError) as caught:
        await send(made)

    assert type(caught.value) is ApiError
    assert (caught.value.code, caught.value.status) == ("some_new_code", status)
    assert len(made.transport.requests) == 1


@pytest.mark.parametrize("code", sorted(errors.ERRORS_BY_CODE))
async def test_each_code_has_a_class(code: str) -> None:
    made = stage(refusal(400, code))

    with pytest.raises(errors.ERRORS_BY_CODE[code]) as caught:
        await send(made)

    assert caught.value.code == code == caught.value.CODE
    assert str(caught.value) == f"{code}: text of {code} (POST /v1/send) [req_1]"
    assert caught.value.docs_url.endswith(f"#{code}")


async def test_a_delete_that_was_done_before_its_answer_was_lost_succeeds() -> None:
    made = stage(ConnectionBroken("reset"), refusal(404, "not_found"))

    await made.client.tags.delete("vip")

    assert len(made.transport.requests) == 2


@pytest.mark.parametrize("first", [ConnectFailed("refused"), refusal(503, "unavailable")])
async def test_a_delete_of_what_never_was_is_refused(first: Step) -> None:
    made = stage(first, refusal(404, "not_found"))

    with pytest.raises(errors.NotFound) as caught:
        await made.client.tags.delete("vip")

    assert not caught.value.earlier_try_unanswered


async def test_an_error_tells_that_an_earlier_try_got_no_answer() -> None:
    made = stage(RequestTimeout("late"), refusal(404, "not_found"))

    with pytest.raises(errors.NotFound) as caught:
        await made.client.tags.rename("old", name="new")

    assert caught.value.earlier_try_unanswered
    assert caught.value.attempts == 2


async def test_an_answer_of_something_else_is_told_as_such() -> None:
    proxied = stage(Answer(504, b"<html>"), max_attempts=1)
    moved = stage(Answer(301, b"", {"location": "https://other.example"}))
    page = stage(Answer(200, b"<html>"))

    with pytest.raises(ApiError, match="http_504"):
        await send(proxied)
    with pytest.raises(ApiError, match="base_url"):
        await send(moved)
    with pytest.raises(InvalidResponse, match="no JSON object"):
        await send(page)


async def test_an_answer_that_lacks_a_field_names_it() -> None:
    with pytest.raises(InvalidResponse, match="message_id"):
        await send(stage(Answer(202, {"status": "queued"})))


async def test_secrets_are_in_no_text() -> None:
    secret = "whsec_c2VjcmV0"
    webhook = {"webhook_id": "whe_1", "secret": secret, "previous_valid_until": "2026-03-01"}
    made = stage(Answer(200, webhook))
    broken = stage(ConnectionBroken("reset"), max_attempts=1)

    rotated = await made.client.webhooks.rotate_secret("whe_1")
    with pytest.raises(ConnectionBroken) as caught:
        await send(broken)

    shown = [repr(rotated), repr(made.client), repr(made.transport.requests), repr(caught.value)]
    shown += traceback.format_exception(caught.value)
    assert rotated.secret == secret
    assert not any(secret in text or API_KEY in text for text in shown)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("key", ["", "msk_\n", "two words", "ключ"])
def test_a_key_that_is_none_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ValueError, match="api_key") as caught:
        AsyncClient(key, "https://msgsvc.example")

    assert not key or key not in str(caught.value)


@pytest.mark.parametrize("url", ["msgsvc.example", "ftp://a.example", "https://u:p@a.example", ""])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        AsyncClient(API_KEY, url)
