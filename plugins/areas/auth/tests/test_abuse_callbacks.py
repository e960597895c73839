"""Forged callbacks: a code is led to what is registered, character for character, and nowhere else."""

from typing import Any

import httpx2
import pytest

REGISTERED = "https://shop.example/back?from=bot"

#: Forms that no browser, or not every browser, takes for the site that a reader sees in them.
MALFORMED = [
    "//evil.example/back?from=bot",
    "//shop.example/back?from=bot",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/back?from=bot",
    "back?from=bot",
    "?from=bot",
    "",
    " ",
    "https:shop.example/back?from=bot",
    "https:/shop.example/back?from=bot",
    "https:///shop.example/back?from=bot",
    "https:\\\\shop.example\\back?from=bot",
    "https://shop.example\\@evil.example/back?from=bot",
    "https://evil.example\\@shop.example/back?from=bot",
    "https://evil.example\\.shop.example/back?from=bot",
    "https://shop.example@evil.example/back?from=bot",
    "https://shop.example:443@evil.example/back?from=bot",
    "https://ann:secret@shop.example/back?from=bot",
    "https://@shop.example/back?from=bot",
    "https://shop.example%40evil.example/back?from=bot",
    "https://shop.example%2eevil.example/back?from=bot",
    "https://shop.example%2f@evil.example/",
    "https://shop.example%00.evil.example/",
    "javascript:alert(1)",
    "JavaScript:alert(1)//https://shop.example/back?from=bot",
    "java\nscript:alert(1)",
    "javascript://shop.example/back?from=bot%0aalert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:msgbox(1)",
    "file:///etc/passwd",
    "blob:https://shop.example/back",
    "ftp://shop.example/back?from=bot",
    "tg://resolve?domain=evil_bot",
    "intent://shop.example/back#Intent;scheme=https;end",
    "http://shop.example/back?from=bot",
    "ws://shop.example/back?from=bot",
    "https://shop.example/back?from=bot#",
    "https://shop.example/back?from=bot#top",
    "https://evil.example#@shop.example/back?from=bot",
    "https://evil.example#.shop.example/back?from=bot",
    "https://shop.example./back?from=bot",
    "https://.shop.example/back?from=bot",
    "https://shop..example/back?from=bot",
    "https://shop.example:/../@evil.example/ ",
    "https://shop.example:0/back?from=bot",
    "https://shop.example:99999/back?from=bot",
    "https://shop.example:evil/back?from=bot",
    "https://[shop.example]/back?from=bot",
    "https://[::1/back?from=bot",
    " https://shop.example/back?from=bot",
    "https://shop.example/back?from=bot ",
    "\thttps://shop.example/back?from=bot",
    "https://shop.example/back?from=bot\n",
    "https://shop.example/back?from=bot\r\nLocation: https://evil.example",
    "https://shop.exa\tmple/back?from=bot",
    "https://shop.example/ba\nck?from=bot",
    "https://shop.example/back?from=bot\x7f",
    "https://shop.example/back?from=bot\u202e",
    "https://shop.example\u3002evil.example/",
    "https://shop.example\uff0eevil.example/",
    "https://shop.example\uff0fevil.example/",
    "https://shop.example\u2044evil.example/",
    "https://shop\u200b.example/back?from=bot",
    "https://shop\u00ad.example/back?from=bot",
    "https://shop.example\u00a0/back?from=bot",
    "https://shop_.example/back?from=bot",
    "https://-shop.example/back?from=bot",
    "https://shop.example/back?from=bot&code=mine",
    "https://shop.example/back?from=bot&state=mine",
    "https://shop.example/back?from=bot&%63ode=mine",
]

#: Well formed, but of other sites or other places of the same: whose they are, may register them.
OTHERS = [
    "https://shop.example.evil.example/back?from=bot",
    "https://evil.example/back?from=bot",
    "https://evil.example/https://shop.example/back?from=bot",
    "https://evil.example/?next=https://shop.example/back",
    "https://evilshop.example/back?from=bot",
    "https://evil-shop.example/back?from=bot",
    "https://www.shop.example/back?from=bot",
    "https://shop.example.com/back?from=bot",
    "https://example/back?from=bot",
    "https://shop.example:8443/back?from=bot",
    "https://shop.example:443/back?from=bot",
    "https://SHOP.example/back?from=bot",
    "HTTPS://shop.example/back?from=bot",
    "https://shop.example/Back?from=bot",
    "https://shop.example/back/?from=bot",
    "https://shop.example//back?from=bot",
    "https://shop.example/./back?from=bot",
    "https://shop.example/x/../back?from=bot",
    "https://shop.example/back;x?from=bot",
    "https://shop.example/%62ack?from=bot",
    "https://shop.example/back%3Ffrom=bot",
    "https://shop.example/back",
    "https://shop.example/back?",
    "https://shop.example/back?from=bots",
    "https://shop.example/back?from=bo",
    "https://shop.example/back?from=%62ot",
    "https://shop.example/back?from=bot&",
    "https://shop.example/back?from=bot&x=1",
    "https://shop.example/back?x=1&from=bot",
    "https://sh\u043ep.example/back?from=bot",
    "https://\uff53hop.example/back?from=bot",
    "https://xn--shp-qqa.example/back?from=bot",
    "https://shop.example/b\u0430ck?from=bot",
    "http://localhost/back?from=bot",
    "https://127.0.0.1/back?from=bot",
]


async def refused(
    client: httpx2.AsyncClient, method: str, path: str, urls: list[str], **body: Any
) -> dict[str, str]:
    """What each URL was answered with: an error's code, or `taken`."""
    told: dict[str, str] = {}
    for url in urls:
        answer = await client.request(method, path, json={**body, "callback_url": url})
        told[url] = "taken" if answer.is_success else answer.json()["code"]
    return told


async def test_a_session_leads_to_no_forged_form_of_a_registered_callback(
    client: httpx2.AsyncClient, link: dict[str, Any]
) -> None:
    assert link["callback_url"] == REGISTERED
    forged = [*MALFORMED, *OTHERS]
    told = await refused(client, "POST", "/v1/auth/session", forged)

    assert {url: code for url, code in told.items() if code != "invalid_url"} == {}
    # None of them took one of the five slots of the hour.
    taken = await refused(client, "POST", "/v1/auth/session", [REGISTERED])
    assert taken == {REGISTERED: "taken"}


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_a_malformed_callback_can_t_be_registered(
    client: httpx2.AsyncClient, link: dict[str, Any], method: str
) -> None:
    if method == "POST":
        told = await refused(
            client, method, "/v1/auth/links", MALFORMED, slug="forged", name="Forged"
        )
    else:
        told = await refused(client, method, "/v1/auth/links/shop", MALFORMED)

    assert {url: code for url, code in told.items() if code != "invalid_url"} == {}
    links = (await client.get("/v1/auth/links")).json()["data"]
    assert [found["callback_url"] for found in links] == [REGISTERED]


async def test_other_callbacks_are_kept_verbatim_and_stand_for_themselves_alone(
    client: httpx2.AsyncClient, link: dict[str, Any]
) -> None:
    path = "/v1/auth/links/shop"
    for url in OTHERS:
        changed = await client.patch(path, json={"callback_url": url})

        assert changed.status_code == 200, (url, changed.text)
        assert changed.json()["callback_url"] == (await client.get(path)).json()["callback_url"]
        assert changed.json()["callback_url"] == url
        others = [other for other in OTHERS if other != url]
        wrong = await refused(client, "POST", "/v1/auth/session", [REGISTERED, *others[:3]])
        assert set(wrong.values()) == {"invalid_url"}, url


@pytest.mark.parametrize("url", [7, True, ["https://shop.example/back?from=bot"], {"x": "y"}])
async def test_a_callback_that_is_no_text_is_refused(
    client: httpx2.AsyncClient, link: dict[str, Any], url: object
) -> None:
    answers = [
        await client.post("/v1/auth/session", json={"callback_url": url}),
        await client.patch("/v1/auth/links/shop", json={"callback_url": url}),
    ]

    assert [answer.json()["code"] for answer in answers] == ["validation_failed"] * 2


async def test_a_callback_with_nul_is_refused(
    client: httpx2.AsyncClient, link: dict[str, Any]
) -> None:
    body = {"callback_url": REGISTERED + "\x00"}

    answers = [
        await client.post("/v1/auth/session", json=body),
        await client.patch("/v1/auth/links/shop", json=body),
    ]

    assert [answer.status_code for answer in answers] == [400, 400]
