"""Starting a service: once, and beside others."""

import asyncio
import threading
from pathlib import Path

import pytest

from msgsvc_core.config.settings import Settings
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory


def _service(folder: Path, number: int) -> Service:
    url = f"sqlite:///{folder}/{number}.db"
    return Service(Settings(database_url=url, secret_keys=["k" * 32], plugins=[], channels={}))


async def test_services_of_one_process_migrate_their_databases_at_once(tmp_path: Path) -> None:
    services = [_service(tmp_path, number) for number in range(2)]

    await asyncio.gather(*(service.start() for service in services))

    for service in services:
        async with service.db.read() as tx:
            assert await tx.fetch_val("SELECT COUNT(*) FROM core_projects") == 0
        await service.stop()


def test_services_in_threads_migrate_their_databases_at_once(tmp_path: Path) -> None:
    wrong: list[Exception] = []

    async def started(number: int) -> None:
        service = _service(tmp_path, number)
        await service.start()
        await service.stop()

    def run(number: int) -> None:
        try:
            asyncio.run(started(number))
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert wrong == []
    assert not any(thread.is_alive() for thread in threads)


async def test_a_service_is_not_started_twice(make_service: ServiceFactory) -> None:
    service = await make_service()

    with pytest.raises(RuntimeError, match="has been started"):
        await service.start()


@pytest.mark.both_databases
async def test_a_service_that_is_being_started_is_not_started_beside_it(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(start=False)
    before = set(asyncio.all_tasks())

    outcomes = await asyncio.gather(service.start(), service.start(), return_exceptions=True)
    await service.stop()
    left = {task for task in asyncio.all_tasks() - before if not task.done()}

    assert [type(outcome) for outcome in outcomes] == [type(None), RuntimeError]
    assert left == set()
