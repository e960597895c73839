"""Steps go out one after the other, each once, none early, and to whom they are for."""

from typing import Any

import pytest

from msgsvc_devkit import settled

from .conftest import DAY, HOUR, MINUTE, WITH_DRIP, Shop, refusal, steps_of


async def test_steps_go_out_after_their_delays_and_none_early(shop: Shop) -> None:
    steps = [
        {"delay": {"minutes": 10}, "message": {"text": "one"}},
        {"delay": {"hours": 2}, "message": {"text": "two"}},
        {"delay": {"days": 3}, "message": {"text": "three"}},
    ]
    drip_id = await shop.chain(steps=steps)
    await shop.enroll(drip_id, await shop.person())

    assert await shop.after(10 * MINUTE - 1) == []
    assert await shop.after(1) == ["one"]
    assert await shop.after(2 * HOUR - 1) == ["one"]
    assert await shop.after(1) == ["one", "two"]
    assert await shop.after(3 * DAY - 1) == ["one", "two"]
    assert await shop.after(1) == ["one", "two", "three"]
    assert await shop.after(30 * DAY) == ["one", "two", "three"]


async def test_every_step_and_the_end_are_told(shop: Shop) -> None:
    drip_id = await shop.chain("one", "two")
    enrollment_id = await shop.enroll(drip_id, await shop.person())
    await shop.after(HOUR)
    await shop.after(HOUR)

    messages = (await shop.client.get("/v1/messages")).json()["data"]
    second, first = [message["message_id"] for message in messages]
    common = {"drip_id": drip_id, "enrollment_id": enrollment_id}
    assert await shop.told("drip.step_sent", "drip.completed") == [
        {"event": "drip.step_sent", **common, "step": 1, "message_id": first},
        {"event": "drip.step_sent", **common, "step": 2, "message_id": second},
        {"event": "drip.completed", **common, "step": 2, "message_id": second},
    ]


@pytest.mark.both_databases
async def test_enrollment_shows_where_somebody_is(shop: Shop) -> None:
    drip_id = await shop.chain("one", "two")
    subscriber_id = await shop.person()
    await shop.enroll(drip_id, subscriber_id)

    [begun] = await shop.enrollments(drip_id)
    await shop.after(HOUR)
    [halfway] = await shop.enrollments(drip_id, status="active")
    await shop.after(HOUR)
    [ended] = await shop.enrollments(drip_id, status="completed")
    assert (begun["status"], begun["next_step"], begun["due_at"]) == (
        "active",
        1,
        "2026-01-15T13:00:00.000Z",
    )
    assert begun["subscriber_id"] == subscriber_id
    assert (halfway["next_step"], halfway["due_at"]) == (2, "2026-01-15T14:00:00.000Z")
    assert (ended["next_step"], ended["due_at"]) == (None, None)
    assert ended["finished_at"] == "2026-01-15T14:00:00.000Z"
    assert await shop.enrollments(drip_id, status="active") == []


async def test_steps_without_delay_go_out_in_their_order(shop: Shop) -> None:
    texts = [f"step {number}" for number in range(1, 11)]
    drip_id = await shop.chain(steps=steps_of(*texts, minutes=0))
    await shop.enroll(drip_id, await shop.person())

    assert await shop.after(MINUTE) == texts


async def test_after_an_outage_steps_keep_their_distance(shop: Shop, make_service: Any) -> None:
    drip_id = await shop.chain("one", "two", "three")
    await shop.enroll(drip_id, await shop.person())
    await settled(shop.service)
    await shop.service.stop()
    shop.clock.advance(10 * DAY)

    shop.service = await make_service(**WITH_DRIP, database_url=shop.service.settings.database_url)

    assert await shop.after(0) == ["one"]
    assert await shop.after(HOUR - 1) == ["one"]
    assert await shop.after(1) == ["one", "two"]
    assert await shop.after(HOUR) == ["one", "two", "three"]


async def test_text_is_in_the_language_of_the_person(shop: Shop) -> None:
    text = {"en": "Hello", "ru": "Привет"}
    steps = [{"delay": {"hours": 1}, "message": {"text": text}}]
    drip_id = await shop.chain(steps=steps)
    for name, lang in (("Ann", "en"), ("Boris", "ru")):
        await shop.enroll(drip_id, await shop.person(name, lang=lang))
    await shop.after(HOUR)

    assert (shop.texts("Ann"), shop.texts("Boris")) == (["Hello"], ["Привет"])


async def test_template_knows_the_person(shop: Shop) -> None:
    await shop.call("/templates", key="hello", text="Hi {{ first_name }}, {{ gift }} for you")
    message = {"template": "hello", "variables": {"gift": "a cup"}}
    drip_id = await shop.chain(steps=[{"delay": {"hours": 1}, "message": message}])
    await shop.enroll(drip_id, await shop.person())

    assert await shop.after(HOUR) == ["Hi Ann, a cup for you"]


async def test_message_has_all_that_a_send_has(shop: Shop) -> None:
    message = {
        "text": "*Sale*",
        "format": "markdown",
        "buttons": [[{"text": "Look", "url": "https://shop.example"}]],
        "silent": True,
        "metadata": {"campaign": "spring"},
    }
    drip_id = await shop.chain(steps=[{"delay": {"hours": 1}, "message": message}])
    await shop.enroll(drip_id, await shop.person())
    await shop.after(HOUR)

    [sent] = (await shop.client.get("/v1/messages")).json()["data"]
    assert (sent["format"], sent["silent"]) == ("markdown", True)
    assert sent["buttons"] == [
        [{"text": "Look", "url": "https://shop.example", "data": None, "style": None}]
    ]
    assert sent["metadata"] == {"campaign": "spring"}


async def test_rich_text_is_shown_as_lines_by_a_messenger_without_blocks(shop: Shop) -> None:
    text = "<h2>{{ first_name }}</h2><ul><li>- {{ first_name }}</li></ul>"
    steps = [{"delay": {"hours": 1}, "message": {"text": text, "format": "rich"}}]
    drip_id = await shop.chain(steps=steps)
    await shop.enroll(drip_id, await shop.person("<Ann>"))

    assert await shop.after(HOUR) == ["<b>&lt;Ann&gt;</b>\n\n• - &lt;Ann&gt;"]


async def test_text_holds_each_persons_own_values(shop: Shop) -> None:
    text = {
        "en": '*{{ first_name }}* of {{ attributes.city | default("your city") }}: {{ tags }}',
        "ru": '{{ first_name }}, {{ username | default("друг") }}',
    }
    message = {"text": text, "format": "markdown"}
    drip_id = await shop.chain(steps=[{"delay": {"hours": 1}, "message": message}])
    ann, _, _ = people = [
        await shop.person("Ann"),
        await shop.person("B*b"),
        await shop.person("Cid", lang="ru"),
    ]
    await shop.call(
        f"/subscribers/{ann}", "PATCH", attributes={"city": "Bonn"}, tags=["vip", "new"]
    )
    for subscriber_id in people:
        await shop.enroll(drip_id, subscriber_id)
    await shop.after(HOUR)

    assert shop.texts("Ann") == ["*Ann* of Bonn: new, vip"]
    # A name is no markup.
    assert shop.texts("B*b") == ["*B\\*b* of your city: "]
    assert shop.texts("Cid") == ["Cid, друг"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Hi {{ nickname }}", "variables.nickname: is required"),
        ("Hi {{ username }}", "variables.username: is required"),
        ("Hi {{ first_name", "text"),
    ],
)
async def test_text_that_would_have_holes_is_refused(shop: Shop, text: str, why: str) -> None:
    steps = [{"delay": {"hours": 1}, "message": {"text": text}}]
    answer = await shop.client.post(
        "/v1/drips", json={"name": "Holes", "trigger": {"on": "manual"}, "steps": steps}
    )

    assert refusal(answer) == (400, "validation_failed")
    assert answer.json()["error"].startswith(f"steps[0]: {why}")


async def test_step_whose_template_is_gone_is_left_out(shop: Shop) -> None:
    await shop.call("/templates", key="hello", text="Hi")
    gone = {"delay": {"hours": 1}, "message": {"template": "hello"}}
    drip_id = await shop.chain(steps=[gone, *steps_of("two", "three")])
    await shop.enroll(drip_id, await shop.person())
    await shop.call("/templates/hello", "DELETE")
    await shop.after(HOUR)

    [enrollment] = await shop.enrollments(drip_id)
    assert enrollment["reason"] == "step 1: there is no template 'hello'"
    assert await shop.after(HOUR) == ["two"]


async def test_conditions_decide_who_gets_a_step(shop: Shop) -> None:
    await shop.call("/permissions", key="news", title="News")
    whens: list[dict[str, Any]] = [
        {"tags_any": ["vip", "gold"]},
        {"tags_none": ["vip"]},
        {"permission": "news"},
        {"lang": "ru"},
        {"channel": "messenger_b"},
        {"attribute": {"name": "plan", "equals": "pro"}},
        {"attribute": {"name": "paid", "equals": True}},
        {"tags_any": ["vip"], "lang": "en"},
    ]
    steps = [
        {"delay": {"minutes": 0}, "message": {"text": f"{number}"}, "when": when}
        for number, when in enumerate(whens)
    ]
    drip_id = await shop.chain(steps=steps)
    ann = await shop.person("Ann")
    await shop.call(f"/subscribers/{ann}/tags/vip", "PUT")
    await shop.call(f"/subscribers/{ann}/permissions/news", "PUT")
    await shop.call(f"/subscribers/{ann}", "PATCH", attributes={"plan": "pro", "paid": 1})
    boris = await shop.person("Boris", lang="ru")
    await shop.call(f"/subscribers/{boris}", "PATCH", attributes={"paid": True})
    for who in (ann, boris):
        await shop.enroll(drip_id, who)
    await shop.after(MINUTE)

    assert shop.texts("Ann") == ["0", "2", "5", "7"]
    assert shop.texts("Boris") == ["1", "3", "6"]


async def test_left_out_step_goes_on_to_the_next_after_its_delay(shop: Shop) -> None:
    skipped = {**steps_of("one")[0], "when": {"tags_any": ["vip"]}}
    drip_id = await shop.chain(steps=[skipped, *steps_of("two")])
    await shop.enroll(drip_id, await shop.person())

    assert await shop.after(HOUR) == []
    assert await shop.after(HOUR - 1) == []
    assert await shop.after(1) == ["two"]


async def test_end_is_told_when_nothing_was_sent(shop: Shop) -> None:
    steps = [{**steps_of("one")[0], "when": {"lang": "ru"}}]
    drip_id = await shop.chain(steps=steps)
    await shop.enroll(drip_id, await shop.person())
    await shop.after(HOUR)

    [told] = await shop.told("drip.step_sent", "drip.completed")
    assert (told["event"], told["step"], told["message_id"]) == ("drip.completed", 1, None)
