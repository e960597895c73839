"""A plugin for tests: the service's clock is ahead by as many seconds as stand in a file beside this module.

The module is copied into the deployment's folder, so each service has a clock of its own.
"""

from pathlib import Path

from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl

#: The name of that file. Without it the clock is right.
AHEAD_S = "ahead_s"

_AHEAD_S = Path(__file__).with_name(AHEAD_S)


class ClockAhead(SystemClock):
    """The machine's clock, and some seconds."""

    def time(self) -> float:
        return super().time() + _ahead_s()

    def now_ms(self) -> int:
        return super().now_ms() + _ahead_s() * 1000


def _ahead_s() -> int:
    return int(_AHEAD_S.read_text()) if _AHEAD_S.exists() else 0


@hookimpl
def create_plugin(context: PluginContext) -> None:
    # Everybody has this clock already: it becomes another one.
    context.clock.__class__ = ClockAhead
