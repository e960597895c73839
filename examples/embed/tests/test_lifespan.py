"""Shops that start and stop, with nothing else in the process whose tasks could be taken for theirs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from examples.embed import fastapi_app, starlette_app
from examples.embed.tests.test_embed import BUILDERS, Build, make, served
from msgsvc_devkit import settled


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
async def test_the_lifespan_stops_the_service_and_a_new_one_goes_on(
    build: Build, tmp_path: Path
) -> None:
    before = asyncio.all_tasks()
    async with served(make(build, tmp_path / "shop.db")) as shop:
        await shop.subscribe("ann")
        project_id = shop.app.state.project_id
    others = asyncio.all_tasks() - before

    async with served(make(build, tmp_path / "shop.db")) as shop:
        answer = await shop.client.post("/orders/18/ship/ann")
        await settled(shop.service)

    assert not others, "the stopped service left tasks behind"
    assert shop.app.state.project_id == project_id
    assert answer.json()["told"] is not None


async def test_two_services_in_one_process_know_nothing_of_each_other(tmp_path: Path) -> None:
    first = make(starlette_app.build, tmp_path / "first.db")
    second = make(fastapi_app.build, tmp_path / "second.db")
    async with served(first) as one, served(second) as two:
        await one.subscribe("ann")
        told: list[Any] = [
            (await shop.client.post("/orders/17/ship/ann")).json()["told"] for shop in (one, two)
        ]
        key_of_one = await one.new_key()
        refused = await two.client.get("/msgsvc/v1/project", headers=key_of_one)
        await settled(one.service)

    assert told[0] is not None
    assert told[1] is None
    assert refused.json()["code"] == "invalid_api_key"
    assert (len(one.texts) > 0, two.texts) == (True, [])
