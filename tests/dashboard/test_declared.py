"""What can be declared as a page of the dashboard."""

from typing import Any

import pytest

from msgsvc_core.dashboard import PageContext, Pages, Shown

pages = Pages("sample", package="tests.dashboard.sample")


async def wants_a_part(page: PageContext, entry_id: str) -> Shown:
    return Shown("samples.html", {"entry": entry_id})


async def wants_nothing() -> Shown:
    return Shown("samples.html", {})


@pytest.mark.parametrize("handler", [wants_a_part, wants_nothing])
@pytest.mark.parametrize(
    "declare",
    [
        pages.get("/samples/{entry_id}", access="look"),
        pages.post("/samples/{entry_id}", access="manage"),
        pages.card(),
    ],
    ids=["get", "post", "card"],
)
def test_a_handler_that_could_not_be_called_is_refused_where_it_is_declared(
    declare: Any, handler: Any
) -> None:
    with pytest.raises(TypeError, match=r"parts of its path are in page\.params"):
        declare(handler)
