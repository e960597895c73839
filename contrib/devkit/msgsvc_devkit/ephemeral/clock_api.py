"""The clock over HTTP. Only an ephemeral service has it: no plugin that can be installed brings it."""

from collections.abc import Sequence

from pydantic import Field

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Endpoint, RequestModel, ResponseModel, Router
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import Conflict, Forbidden
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit.clock import MovableClock
from msgsvc_devkit.ephemeral.time_travel import TimeTravel
from msgsvc_sandbox.admission import Admission

PATH = "/sandbox/api/clock"

#: The most seconds of one move: a year.
MOST_S = 366 * 24 * 3600


class Move(RequestModel):
    """How far to move the clock."""

    advance_s: float = Field(
        gt=0,
        le=MOST_S,
        description="Seconds by which the clock is moved forward.",
        examples=[600],
    )


class ClockReading(ResponseModel):
    """The service's time."""

    now: str = Field(description="The service's time.", examples=["2026-01-15T12:10:00.000Z"])
    ahead_s: float = Field(
        description="Seconds by which it is ahead of the machine's clock.", examples=[600.0]
    )


class ClockPlugin:
    """The plugin of an ephemeral service, beside those that are installed."""

    def __init__(self, clock: MovableClock) -> None:
        self._clock = clock
        self._endpoints: Sequence[Endpoint] = ()

    @hookimpl
    def create_plugin(self, context: PluginContext) -> None:
        time_travel = TimeTravel(clock=self._clock, db=context.db, jobs=context.jobs)
        self._endpoints = endpoints(time_travel, Admission("local", context.config.base_url))

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return self._endpoints


def endpoints(time_travel: TimeTravel, admission: Admission) -> Sequence[Endpoint]:
    """Reading and moving the clock, for those who may use the sandbox messenger."""
    # Moving waits for jobs, which need the connections that a handler would hold.
    router = Router(area="sandbox")

    @router.get(PATH, errors=(Forbidden,), public=True, holds_connection=False)
    async def sandbox_clock(ctx: Context) -> ClockReading:
        """Shows the service's time."""
        admission.check("GET", ctx.client_ip, ctx.headers)
        return _reading(time_travel)

    @router.post(PATH, errors=(Forbidden, Conflict), public=True, holds_connection=False)
    async def sandbox_move_clock(ctx: Context, body: Move) -> ClockReading:
        """Moves the clock forward, and answers when everything that became due is done."""
        admission.check("POST", ctx.client_ip, ctx.headers)
        try:
            await time_travel.advance(body.advance_s)
        except TimeoutError:
            raise Conflict("jobs are still running, so the clock can't be moved further") from None
        return _reading(time_travel)

    return router.endpoints


def _reading(time_travel: TimeTravel) -> ClockReading:
    return ClockReading(
        now=to_rfc3339(time_travel.clock.now_ms()), ahead_s=round(time_travel.ahead_s, 3)
    )
