"""For tests of msgsvc, of plugins and of programs that embed it.

The fixtures are in `msgsvc_core.testing.fixtures`; load them with `-p msgsvc_core.testing.fixtures`.
"""

from msgsvc_core.testing.channel import RecordingChannel, RecordingPlugin, Sent
from msgsvc_core.testing.clock import FakeClock
from msgsvc_core.testing.work import settled, until

__all__ = ["FakeClock", "RecordingChannel", "RecordingPlugin", "Sent", "settled", "until"]
