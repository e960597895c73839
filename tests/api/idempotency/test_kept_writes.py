"""An error that keeps its writes: what the handler counted before it raised it stays counted."""

from collections.abc import Sequence

import httpx2
import pytest

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Endpoint, ResponseModel, Router
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory
from tests.api.idempotency.effects import KEY, CountEffects


class Missed(ApiError):
    """A try that was counted."""

    code, status, keeps_writes = "missed", 400, True


class Tries:
    """A plugin with an endpoint that counts a try, and fails."""

    def __init__(self) -> None:
        self.committed = 0

    @hookimpl
    def register_errors(self) -> Sequence[type[ApiError]]:
        return [Missed]

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        router = Router(area="tries")

        @router.post("/v1/tries", errors=(Missed,))
        async def try_it(ctx: Context) -> ResponseModel:
            """Counts a try, and fails."""
            name = f"try-{ctx.request_id}"[:64]
            row = {
                "project_id": ctx.project_id,
                "tag_id": name,
                "name": name,
                "created_at_ms": 0,
            }
            await ctx.tx.insert("core_tags", row)
            ctx.tx.on_commit(self._count)
            raise Missed

        return router.endpoints

    def _count(self) -> None:
        self.committed += 1


@pytest.fixture
def effects() -> Tries:
    return Tries()


@pytest.fixture
async def service(make_service: ServiceFactory, effects: Tries) -> Service:
    return await make_service(extra_plugins=[("tries", effects)])


async def test_what_was_written_before_the_error_is_committed(
    client: httpx2.AsyncClient, effects: Tries, count_effects: CountEffects
) -> None:
    answers = [await client.post("/v1/tries") for _ in range(2)]

    assert [(one.status_code, one.json()["code"]) for one in answers] == [(400, "missed")] * 2
    assert (await count_effects(), effects.committed) == (2, 2)


async def test_with_a_key_it_is_written_once_and_the_error_is_given_again(
    client: httpx2.AsyncClient, effects: Tries, count_effects: CountEffects
) -> None:
    first, again = [await client.post("/v1/tries", headers=KEY) for _ in range(2)]

    assert (first.status_code, again.content) == (400, first.content)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (await count_effects(), effects.committed) == (1, 1)
