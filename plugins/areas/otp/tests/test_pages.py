"""The pages in the dashboard: a code is sent to try it, guessed wrong, and checked."""

import re
from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser, DeliveryError, Reason
from msgsvc_core.routing import Routes
from msgsvc_core.routing.models import CreateRouteBody
from msgsvc_devkit import settled
from msgsvc_devkit.dashboard import visitor
from msgsvc_otp import plugin

WITH_DASHBOARD: dict[str, Any] = {"extra_plugins": [("otp", plugin)], "plugins": ("dashboard",)}

#: What somebody might try to have a page run.
HOSTILE = "<script>alert(1)</script>\"'{{7*7}}"


async def test_a_code_is_sent_guessed_wrong_and_verified(make_service: Any) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    async with service.db.transaction() as tx:
        person = await service.subscribers.ensure(
            tx,
            project.project_id,
            "messenger_a",
            ChannelUser("u1", HOSTILE, None, "en"),
            "chat-1",
            source="api",
        )

    refused = await owner.post("/codes", {"who": "nobody", "purpose": "login"})
    named = await owner.post("/codes", {"who": "<SCRIPT", "purpose": "login"})
    searched = await owner.get("/codes/recipients", who="<scr")
    pasted = await owner.get("/codes/recipients", who=person.subscriber_id)
    chosen = {"who-chosen": person.subscriber_id, "who-searched": "<scr", "purpose": "login"}
    other = await owner.post("/codes", {**chosen, "who": "<scri"})
    sent = await owner.post("/codes", {**chosen, "who": "<scr"})
    await settled(service)
    path = sent.headers["location"]
    text = service.channels["messenger_a"].sent[-1].message.text
    digits = re.search(r"^\d{6}$", text, re.MULTILINE)
    assert digits is not None
    wrong = await owner.post(f"{path}/verify", {"code": f"{(int(digits[0]) + 1) % 10**6:06}"})
    right = await owner.post(f"{path}/verify", {"code": digits[0]})
    shown = await owner.get(path)
    listed = await owner.get("/codes")

    assert refused.status_code == 404
    assert 'value="nobody"' in refused.text
    # Without scripts too a name leads to who is meant; what was found for another text is not used.
    assert (named.status_code, other.status_code) == (404, 404)
    for page in (named, searched, pasted):
        assert f'name="who-chosen" value="{person.subscriber_id}"' in page.text
        assert "<script>alert" not in page.text
    assert wrong.status_code == 400
    # The guess counts although it was refused.
    assert re.search(r"Attempts left</dt><dd>2<", wrong.text)
    assert right.status_code == 303
    assert "Verified" in shown.text
    assert digits[0] not in shown.text + listed.text
    assert "<script>alert" not in shown.text + listed.text


@pytest.mark.both_databases
async def test_a_viewer_sends_none_and_a_stranger_finds_none(make_service: Any) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    viewer = await visitor(service, project.project_id, "viewer")

    looked = await viewer.get("/codes")
    refused = await viewer.post("/codes", {"who": "x", "purpose": "login"})
    missing = await viewer.get("/codes/otp_000000000000000000000")

    assert looked.status_code == 200
    assert "Send a code" not in looked.text
    assert (refused.status_code, missing.status_code) == (403, 404)


async def test_a_code_that_was_not_delivered_says_why_in_words(make_service: Any) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    async with service.db.transaction() as tx:
        person = await service.subscribers.ensure(
            tx,
            project.project_id,
            "messenger_a",
            ChannelUser("u1", "Ann", None, "en"),
            "chat-1",
            source="api",
        )
    service.channels["messenger_a"].failures.append(DeliveryError(Reason.INVALID_MESSAGE, "no"))
    sent = await owner.post("/codes", {"who": person.subscriber_id, "purpose": "login"})
    await settled(service)
    shown = await owner.get(sent.headers["location"])
    await owner.client.aclose()

    assert "not delivered: the messenger rejected the message" in shown.text


async def test_a_code_is_sent_by_a_route_and_shows_by_which_step_it_went(make_service: Any) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project_id = (await service.projects.create("Shop")).project_id
    owner = await visitor(service, project_id)
    none = await owner.get("/codes")
    steps = [{"channel": "messenger_a"}, {"channel": "messenger_b"}]
    body = CreateRouteBody.model_validate({"name": HOSTILE, "steps": steps})
    async with service.db.transaction() as tx:
        route = await service.get(Routes).create(tx, project_id, body)
        for name in ("messenger_a", "messenger_b"):
            user = ChannelUser(name, "Ann", None, "en")
            await service.subscribers.ensure(
                tx, project_id, name, user, f"chat-{name}", source="api", external_id="ann-1"
            )
    service.channels["messenger_a"].failures.append(DeliveryError(Reason.INVALID_MESSAGE, "no"))
    form = await owner.get("/codes")
    typed = {"who": "ann-1", "purpose": "login"}
    unknown = await owner.post("/codes", {**typed, "route_id": "rte_unknown"})
    sent = await owner.post("/codes", {**typed, "route_id": route.route_id})
    await settled(service)
    shown = await owner.get(sent.headers["location"])
    async with service.db.transaction() as tx:
        await service.get(Routes).delete(tx, project_id, route.route_id)
    gone = await owner.get(sent.headers["location"])
    await owner.client.aclose()

    assert 'name="route_id"' not in none.text
    assert f'value="{route.route_id}"' in form.text
    assert unknown.status_code == 404
    assert f"/routes/{route.route_id}" in shown.text
    assert "step 2 of 2: Messenger B" in shown.text
    assert len(service.channels["messenger_b"].sent) == 1
    assert f"<code>{route.route_id}</code>" in gone.text
    assert "<script>alert" not in form.text + shown.text
