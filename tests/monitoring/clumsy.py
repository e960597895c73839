"""A plugin with mistakes: a command whose handler raises, and one that enqueues a job that always fails."""

from collections.abc import Sequence

from msgsvc_core.channels.inbound import InboundContext, InboundRule
from msgsvc_core.jobs import Job, JobContext, JobSpec, NewJob
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl


class ClumsyPlugin:
    def __init__(self, context: PluginContext) -> None:
        self._jobs = context.jobs

    @hookimpl
    def register_inbound(self) -> Sequence[InboundRule]:
        return [
            InboundRule("command", self._crash, name="crash"),
            InboundRule("command", self._enqueue, name="enqueue"),
        ]

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [JobSpec("clumsy.fail", self._fail, max_attempts=1)]

    async def _crash(self, ctx: InboundContext) -> None:
        raise RuntimeError("a mistake")

    async def _enqueue(self, ctx: InboundContext) -> None:
        await self._jobs.enqueue(ctx.tx, NewJob("clumsy.fail"))

    async def _fail(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        raise RuntimeError("a mistake")


@hookimpl
def create_plugin(context: PluginContext) -> ClumsyPlugin:
    return ClumsyPlugin(context)
