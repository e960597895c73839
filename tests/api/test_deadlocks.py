"""Two requests that PostgreSQL lets wait for each other: both are answered."""

import asyncio
from collections.abc import Sequence

import pytest

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Endpoint, RequestModel, ResponseModel, Router
from msgsvc_core.api.envelope import api_error
from msgsvc_core.db.errors import DatabaseUnavailable, Deadlock, FileLocked
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory, Tenant


class CrossingBody(RequestModel):
    """Two locks, in the order in which they are taken."""

    locks: list[int]


class CrossingAnswer(ResponseModel):
    """How many requests have had both locks."""

    passed: int


class Crossing:
    """A plugin in which two requests take two locks in opposite orders, `meetings` times."""

    def __init__(self) -> None:
        self.meetings = 1
        self.passed = 0
        self._meeting = asyncio.Barrier(2)

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        router = Router(area="crossing")

        @router.post("/v1/crossing")
        async def cross(ctx: Context, body: CrossingBody) -> CrossingAnswer:
            """Takes two locks."""
            await self._lock(ctx, body.locks[0])
            if self.meetings > 0:
                await self._meeting.wait()
                self.meetings -= 1 if body.locks[0] == 1 else 0
            await self._lock(ctx, body.locks[1])
            self.passed += 1
            return CrossingAnswer(passed=self.passed)

        return router.endpoints

    async def _lock(self, ctx: Context, number: int) -> None:
        await ctx.tx.fetch_val(
            "SELECT 1 FROM (SELECT pg_advisory_xact_lock(:number)) AS locked", {"number": number}
        )


@pytest.fixture
def crossing() -> Crossing:
    return Crossing()


@pytest.fixture
async def service(make_service: ServiceFactory, crossing: Crossing) -> Service:
    return await make_service(extra_plugins=[("crossing", crossing)])


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (Deadlock("deadlock detected"), "other requests changed the same data at the same time"),
        (FileLocked("database is locked"), "another process has locked the database"),
        (DatabaseUnavailable("refused"), "the database can't be reached"),
    ],
)
def test_a_client_reads_why_the_database_did_not_do_it(
    error: DatabaseUnavailable, says: str
) -> None:
    shown = api_error(error)

    assert (shown.status, str(shown), shown.retry_after_s) == (503, says, 1)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
@pytest.mark.parametrize("with_key", [False, True])
async def test_a_request_that_a_deadlock_ended_is_worked_on_again(
    tenant: Tenant, crossing: Crossing, with_key: bool
) -> None:
    answers = await asyncio.gather(
        *(
            tenant.client.post(
                "/v1/crossing",
                json={"locks": locks},
                headers={"Idempotency-Key": f"crossing-{locks[0]}"} if with_key else {},
            )
            for locks in ([1, 2], [2, 1])
        )
    )

    assert [answer.status_code for answer in answers] == [200, 200]
    assert sorted(answer.json()["passed"] for answer in answers) == [1, 2]
