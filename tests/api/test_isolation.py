"""Another project's resource is answered exactly as one that does not exist.

Which places of which requests name resources is read from the routes: see `tests/api/naming.py`.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.naming import KEPT_AS_GIVEN, NAMING_BODIES, REFUSED_AS_IT_IS, Place, places
from tests.api.resources import SETTINGS, MiniAppPlugin
from tests.api.stage import Backend, Stage, Stages
from tests.api.subscribing import Subscribe

MakeTenant = Callable[..., Awaitable[Tenant]]

PLACES = places()

#: Requests that change nothing: a service answers them all.
READING = [place for place in PLACES if place.endpoint.method == "GET"]
CHANGING = [place for place in PLACES if place.endpoint.method != "GET"]

#: What begins the names that the two strangers chose.
_OWN = re.compile("bob|bea", re.IGNORECASE)

#: Ids and tokens, which are new in every answer.
_RANDOM = re.compile(r"[0-9A-Za-z_-]{20,}")


@pytest.fixture(scope="session")
def stages() -> Stages:
    """The stages of this process: the same is set for every place."""
    return Stages()


@pytest.fixture
async def stage(
    stages: Stages, backend: Backend, make_service: ServiceFactory, make_tenant: MakeTenant
) -> AsyncIterator[Stage]:
    """Projects of a service that nothing was asked of yet."""
    async with stages.on(backend, make_service, make_tenant) as stage:
        yield stage


@pytest.fixture
async def read_stage(
    stages: Stages, backend: Backend, make_service: ServiceFactory, make_tenant: MakeTenant
) -> AsyncIterator[Stage]:
    """The same for requests that change nothing, all of which have the service that was set."""
    async with stages.unchanged_on(backend, make_service, make_tenant) as stage:
        yield stage


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("mini_app", MiniAppPlugin())], **SETTINGS)


def missing_like(value: str) -> str:
    """A value of the same form that names nothing: its last three characters are the next ones."""
    following = str.maketrans(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "1234567890bcdefghijklmnopqrstuvwxyzaBCDEFGHIJKLMNOPQRSTUVWXYZA",
    )
    return value[:-3] + value[-3:].translate(following)


def answered(answer: httpx2.Response, asked: str) -> tuple[int, str, list[tuple[str, str]]]:
    """All of an answer but the request's id, what was asked for, own names, and a success's new ids."""
    text = answer.text.replace(asked, "<asked>")
    # First, for letters of a name can stand in an id by chance.
    text = _OWN.sub("?", _RANDOM.sub("?", text) if answer.is_success else text)
    headers = [
        (name, value.replace(asked, "<asked>"))
        for name, value in answer.headers.multi_items()
        if name != "x-request-id"
    ]
    return answer.status_code, text, headers


@pytest.mark.shared_service
@pytest.mark.parametrize("place", READING, ids=str)
async def test_what_another_project_owns_is_read_as_missing(
    read_stage: Stage, place: Place
) -> None:
    await check(read_stage, place)


@pytest.mark.parametrize("place", CHANGING, ids=str)
async def test_what_another_project_owns_is_changed_as_if_it_were_missing(
    stage: Stage, place: Place
) -> None:
    await check(stage, place)


async def check(stage: Stage, place: Place) -> None:
    # Two strangers of equal history, so that even what is left of their rate limits is the same.
    one, other = ("Nob", "Nea") if place.is_alone else ("Bob", "Bea")
    ids = stage.owned["Ann"]
    foreign, missing = ids[place.kind], missing_like(ids[place.kind])

    to_foreign = await stage.ask(one, **place.request(foreign, stage.owned[one]))
    to_missing = await stage.ask(other, **place.request(missing, stage.owned[other]))
    to_own = await stage.ask("Ann", **place.request(foreign, ids))

    assert answered(to_foreign, foreign) == answered(to_missing, missing)
    if place.where == "path":
        assert not place.is_alone or to_foreign.status_code == 404
        refused = 409 if place.endpoint.name in REFUSED_AS_IT_IS else None
        assert to_own.is_success or to_own.status_code == refused, to_own.text
    if place.key not in KEPT_AS_GIVEN:
        assert answered(to_own, foreign)[:2] != answered(to_foreign, foreign)[:2]


def test_every_field_of_a_body_that_names_a_resource_is_asked_for() -> None:
    named = {place.key for place in PLACES if place.where == "body"}

    assert named == set(NAMING_BODIES)
    assert named >= KEPT_AS_GIVEN


@pytest.mark.parametrize(
    "path",
    [
        "/v1/subscribers",
        "/v1/tags",
        "/v1/permissions",
        "/v1/messages",
        "/v1/events",
        "/v1/channels",
        "/v1/channel-requests",
        "/v1/templates",
        "/v1/webhooks",
        "/v1/auth/links",
        "/v1/drips",
        "/v1/members",
    ],
)
async def test_lists_hold_nothing_of_another_project(stage: Stage, path: str) -> None:
    own = await stage.ask("Ann", method="GET", url=path)
    foreign = await stage.ask("Nob", method="GET", url=path)

    assert own.json()["data"]
    assert foreign.json()["data"] == []


@pytest.mark.parametrize("path", ["/v1/subscribers", "/v1/messages", "/v1/events"])
async def test_a_cursor_of_another_project_shows_nothing_of_it(
    service: Service,
    tenant: Tenant,
    make_tenant: Callable[..., Awaitable[Tenant]],
    subscribe: Subscribe,
    path: str,
) -> None:
    for name in ("Ann", "Bob"):
        subscriber_id = await subscribe(name)
        await tenant.client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "Hi"})
    cursor = (await tenant.client.get(f"{path}?limit=1")).json()["next_cursor"]
    other = await make_tenant(service, "Other")

    answer = await other.client.get(path, params={"cursor": cursor})

    assert answer.json() == {"data": [], "next_cursor": None}


async def test_one_person_is_two_subscribers_of_two_projects(
    service: Service, make_tenant: Callable[..., Awaitable[Tenant]], subscribe: Subscribe
) -> None:
    other = await make_tenant(service, "Other")

    assert await subscribe("Ann") != await subscribe("Ann", to=other)
