"""Endpoints whose effects can be counted, and that end as the test wants."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Endpoint, RequestModel, ResponseModel, Router
from msgsvc_core.kernel.errors import (
    ApiError,
    BillingBlocked,
    Conflict,
    Forbidden,
    InternalError,
    InvalidUrl,
    NotFound,
    PlatformBusy,
    RateLimitProject,
    TooEarly,
    Unauthorized,
    Unavailable,
    ValidationFailed,
)
from msgsvc_core.plugins.hookspecs import hookimpl

CountEffects = Callable[[], Awaitable[int]]

KEY = {"Idempotency-Key": "key-1234"}

STORED: tuple[type[ApiError], ...] = (Conflict,)

NOT_STORED: tuple[type[ApiError], ...] = (
    ValidationFailed,
    InvalidUrl,
    Unauthorized,
    BillingBlocked,
    Forbidden,
    NotFound,
    TooEarly,
    RateLimitProject,
    InternalError,
    PlatformBusy,
    Unavailable,
)


class EffectBody(RequestModel):
    """Which error the handler raises after its effect, if any."""

    error: str | None = None
    note: str = ""


class EffectAnswer(ResponseModel):
    """How often the handler has run."""

    calls: int


class Effects:
    """A plugin whose endpoints write a row, and then do as they are told."""

    def __init__(self) -> None:
        self.calls = 0
        self.entered = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        router = Router(area="effects")

        @router.post("/v1/effects", status=201)
        async def make_effect(ctx: Context, body: EffectBody) -> EffectAnswer:
            """Has an effect."""
            await self._effect(ctx)
            if body.error == "crash":
                raise RuntimeError("out of order")
            for error in (*STORED, *NOT_STORED):
                if body.error == error.code:
                    raise error
            return EffectAnswer(calls=self.calls)

        @router.post("/v1/effects/other")
        async def make_other_effect(ctx: Context, body: EffectBody) -> EffectAnswer:
            """Has the same effect at another path."""
            await self._effect(ctx)
            return EffectAnswer(calls=self.calls)

        @router.post("/v1/effects/silent")
        async def make_silent_effect(ctx: Context) -> None:
            """Has an effect and says nothing of it."""
            await self._effect(ctx)

        @router.put("/v1/effects")
        async def put_effect(ctx: Context, body: EffectBody) -> EffectAnswer:
            """Has the effect by a method that takes no key."""
            await self._effect(ctx)
            return EffectAnswer(calls=self.calls)

        return router.endpoints

    async def _effect(self, ctx: Context) -> None:
        self.calls += 1
        self.entered.set()
        await ctx.tx.insert(
            "core_tags",
            {
                "project_id": ctx.project_id,
                "tag_id": f"tag-{self.calls}",
                "name": f"effect-{self.calls}",
                "created_at_ms": 0,
            },
        )
        await self.may_end.wait()
