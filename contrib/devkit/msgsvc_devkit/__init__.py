"""For developing with msgsvc: tests of plugins and of programs that embed it, fakes, kits, the demo.

The fixtures are in `msgsvc_devkit.fixtures`; load them with `-p msgsvc_devkit.fixtures`.
`msgsvc_devkit.webhooks` is for those who receive webhooks, and needs no database.
`plugin_context` and `channel_context` build the objects of a plugin or a channel by hand, from fakes.
`ChannelContract` is what a channel has to show, `PluginContract` what every plugin has.
"""

from typing import TYPE_CHECKING

from msgsvc_devkit.channel import RecordingChannel, RecordingPlugin, Sent
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.late_exports import late_exports
from msgsvc_devkit.work import settled, until

if TYPE_CHECKING:
    from msgsvc_devkit.conformance.channel import ChannelContract, ReceivingContract
    from msgsvc_devkit.conformance.messenger import Fault, Messenger, Shown, cannot
    from msgsvc_devkit.conformance.plugin import PluginContract
    from msgsvc_devkit.fakes.context import FakeContext, channel_context, plugin_context

# pytest and a web server come with the kit: 14 MiB that a process with a testing channel must not have.
# The fakes bring the whole core.
__getattr__ = late_exports(
    __name__,
    {
        "ChannelContract": "conformance.channel",
        "FakeContext": "fakes.context",
        "Fault": "conformance.messenger",
        "Messenger": "conformance.messenger",
        "PluginContract": "conformance.plugin",
        "ReceivingContract": "conformance.channel",
        "Shown": "conformance.messenger",
        "cannot": "conformance.messenger",
        "channel_context": "fakes.context",
        "plugin_context": "fakes.context",
    },
)

__all__ = [
    "ChannelContract",
    "FakeClock",
    "FakeContext",
    "Fault",
    "Messenger",
    "PluginContract",
    "ReceivingContract",
    "RecordingChannel",
    "RecordingPlugin",
    "Sent",
    "Shown",
    "cannot",
    "channel_context",
    "plugin_context",
    "settled",
    "until",
]
