"""Codes, session ids and tokens: each opens one door, and what is seen of one opens no other."""

import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from msgsvc_core.channels import Started
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import Tenant
from plugins.areas.auth.tests.conftest import Person, SignInAs

NO_LINK = "This link is no longer valid. Please ask the site for a new one."


async def verify(client: httpx2.AsyncClient, code: str) -> tuple[int, str | None]:
    answer = await client.post("/v1/auth/verify", json={"code": code})
    return answer.status_code, answer.json().get("code")


def changed_forms(code: str) -> list[str]:
    """What is nearly the code."""
    swapped = code.swapcase()
    wide = chr(ord(code[0]) + 0xFEE0) + code[1:]
    return [
        swapped,
        code.lower() if code != code.lower() else code.upper(),
        f" {code}",
        f"{code} ",
        f"{code}\n",
        f"\ufeff{code}",
        code[:-1],
        code[1:],
        code[::-1],
        code + code,
        f"{code}0",
        f"0{code}",
        wide,
        f"ses_{code}",
        f"{code}%",
        "%",
        "_" * 43,
        "' OR '1'='1",
        "0" * 43,
        "",
    ]


async def test_what_is_nearly_a_code_is_none_and_uses_nothing_up(
    client: httpx2.AsyncClient, ann: Person, sign_in: SignInAs
) -> None:
    code = (await sign_in(ann))["code"]
    told = {form: await verify(client, form) for form in changed_forms(code)}

    assert {form for form, said in told.items() if said != (400, "auth_code_invalid")} == set()
    assert await verify(client, code) == (200, None)


async def test_many_projects_that_try_a_code_neither_learn_from_it_nor_use_it_up(
    service: Service,
    client: httpx2.AsyncClient,
    make_tenant: Callable[..., Awaitable[Tenant]],
    ann: Person,
    sign_in: SignInAs,
) -> None:
    code = (await sign_in(ann))["code"]
    others = [await make_tenant(service, f"Other {number}") for number in range(3)]
    unused = [await verify(other.client, code) for other in others for _ in range(3)]
    right = await verify(client, code)
    used = [await verify(other.client, code) for other in others]

    assert set(unused) == {(400, "auth_code_invalid")}
    assert right == (200, None)
    # What another project hears does not tell whether the code is good, used or made up.
    assert set(used) == {(400, "auth_code_invalid")}


async def test_a_key_of_another_area_does_not_use_a_code_up(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, ann: Person, sign_in: SignInAs
) -> None:
    code = (await sign_in(ann))["code"]
    _, narrow = await service.projects.create_key(
        tenant.project.project_id, "narrow", ("messages",)
    )
    refused = await client.post(
        "/v1/auth/verify", json={"code": code}, headers={"Authorization": f"Bearer {narrow}"}
    )
    nobody = await client.post(
        "/v1/auth/verify", json={"code": code}, headers={"Authorization": ""}
    )

    assert (refused.status_code, nobody.status_code) == (403, 401)
    assert await verify(client, code) == (200, None)


async def test_a_code_is_no_session_id_and_no_token(
    client: httpx2.AsyncClient, ann: Person, bob: Person, sign_in: SignInAs
) -> None:
    code = (await sign_in(ann))["code"]
    paths = [f"/v1/auth/session/{form}/status" for form in (code, f"ses_{code}", f"ses_{code}0")]
    answers = [await client.get(path) for path in paths]
    opened = [
        (await bob.open(f"https://bot?start=auth_{form}")).message.text
        for form in (code, f"s_{code}", f"s_{code[:22]}")
    ]

    assert [answer.status_code for answer in answers] == [404] * 3
    assert {text.partition(".")[0] for text in opened} == {"Эта ссылка больше не действует"}
    assert await verify(client, code) == (200, None)


async def test_a_session_id_is_no_code_and_no_token(
    client: httpx2.AsyncClient, ann: Person, sign_in: SignInAs
) -> None:
    signed_in = await sign_in(ann)
    session_id = signed_in["session_id"]
    bare = session_id.removeprefix("ses_")
    told = {await verify(client, form) for form in (session_id, bare, bare[:43])}
    opened = [
        (await ann.open(f"https://bot?start=auth_{form}")).message.text
        for form in (session_id, f"s_{bare}", f"s_{bare[:22]}", f"s_{bare[-22:]}")
    ]

    assert told == {(400, "auth_code_invalid")}
    assert opened == [NO_LINK] * 4
    assert await verify(client, signed_in["code"]) == (200, None)


async def test_a_token_is_no_code(client: httpx2.AsyncClient, ann: Person) -> None:
    session = (await client.post("/v1/auth/session", json={})).json()
    token = session["links"]["messenger_a"].partition("auth_s_")[2]
    await ann.press(await ann.open(session["links"]["messenger_a"]), "Yes")
    told = {await verify(client, form) for form in (token, f"auth_s_{token}", f"s_{token}")}

    assert told == {(400, "auth_code_invalid")}


async def test_nobody_polls_with_what_the_qr_code_the_link_and_the_bot_show(
    client: httpx2.AsyncClient, ann: Person
) -> None:
    session = (await client.post("/v1/auth/session", json={"state": "xyz"})).json()
    link = session["links"]["messenger_a"]
    question = await ann.open(link)
    seen = [link, session["qr"]["messenger_a"]]
    seen += [button.data or "" for row in question.message.buttons for button in row]
    await ann.press(question, "Yes")
    # Whatever stands in them, whole or in part; and a key of the very project to ask with.
    words = {word for text in seen for word in [text, *re.split(r"[/?=:~.&]+", text)] if word}
    forms = {form for word in words for form in (word, f"ses_{word}", word.removeprefix("auth_"))}
    forms |= {form.removeprefix("s_") for form in forms}
    answers = {
        form: (await client.get(f"/v1/auth/session/{quote(form, safe='')}/status")).status_code
        for form in forms
    }

    assert len(forms) > 20
    assert set(answers.values()) == {404}
    assert session["session_id"] not in "".join(seen)


async def test_a_start_payload_is_read_whole(
    service: Service, client: httpx2.AsyncClient, ann: Person
) -> None:
    session = (await client.post("/v1/auth/session", json={})).json()
    payload = session["links"]["messenger_a"].partition("?start=")[2]
    forms = [payload + "\n", payload.upper(), payload + "0", payload[:-1], payload + "\u0000"]
    said = []
    for number, form in enumerate(forms):
        await service.inbound.receive(
            "messenger_a",
            Started(update_id=f"odd-{number}", chat_id=ann.chat_id, user=ann.user, payload=form),
        )
        await settled(service)
        said.append(ann.shown.message.text)

    assert said == [NO_LINK] * len(forms)


@pytest.mark.shared_service
@pytest.mark.parametrize("code", [None, 7, ["x"], {"a": 1}, "x" * 257])
async def test_what_can_be_no_code_is_refused_by_its_field(
    client: httpx2.AsyncClient, code: Any
) -> None:
    answer = await client.post("/v1/auth/verify", json={"code": code})

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
    assert answer.json()["error"].startswith("code: ")
