"""What can be declared as a page of the dashboard."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from msgsvc_core.dashboard import PageContext, Pages, Render
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.providers import NotProvided, Providers
from msgsvc_devkit import FakeClock


def sample() -> Pages:
    return Pages("sample", package="tests.dashboard.sample")


async def wants_a_part(page: PageContext, entry_id: str) -> Render:
    return Render("samples.html", {"entry": entry_id})


async def wants_nothing() -> Render:
    return Render("samples.html", {})


async def wants_a_clock(page: PageContext, clock: Clock) -> Render:
    return Render("samples.html", {"now": clock.now_ms()})


@pytest.mark.parametrize("handler", [wants_a_part, wants_nothing])
@pytest.mark.parametrize("kind", ["get", "post", "again", "card"])
def test_a_handler_that_could_not_be_called_is_refused_at_start(
    kind: str, handler: Callable[..., Awaitable[Any]]
) -> None:
    pages = sample()
    declare = {
        "get": pages.get("/samples/{entry_id}", access="project:read"),
        "post": pages.post(
            "/samples/{entry_id}", access="project:write", title=lambda _: _("Changed")
        ),
        "again": pages.post(
            "/samples", access="project:write", form_page=handler, title=lambda _: _("Added")
        ),
        "card": pages.card(),
    }[kind]
    declare(wants_a_clock if kind == "again" else handler)
    providers = Providers()
    providers.add(FakeClock(), kind=Clock)

    with pytest.raises(TypeError, match=r"parts of its path are in page\.params"):
        pages.bound(providers)


def test_a_type_that_nobody_provides_is_named_at_start() -> None:
    pages = sample()
    pages.get("/samples", access="project:read")(wants_a_clock)

    with pytest.raises(NotProvided, match="wants_a_clock asks for `clock: Clock`"):
        pages.bound(Providers())


async def test_a_handler_gets_what_it_names_by_type() -> None:
    pages, providers = sample(), Providers()
    pages.get("/samples", access="project:read")(wants_a_clock)
    clock = FakeClock()
    providers.add(clock, kind=Clock)

    [page] = pages.bound(providers).pages
    assert page.show is not None
    shown = await page.show(None)  # type: ignore[arg-type]

    assert shown.values["now"] == clock.now_ms()  # type: ignore[union-attr]
