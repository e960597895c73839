"""Development tools for msgsvc: test fixtures, fakes of messengers, conformance kits, and the demo.

The fixtures are in `msgsvc_devkit.fixtures`; load them with `-p msgsvc_devkit.fixtures`.
`msgsvc_devkit.webhooks` helps to test receivers of webhooks, and needs no database.
`memory_core` has the service's parts on a database in memory, and `channel_context` what a channel gets.
`ChannelContract` is the conformance kit for channels, `PluginContract` the one for all plugins.
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
    from msgsvc_devkit.core import BotCall, MemoryCore, channel_context, memory_core

# The kit imports pytest and a web server: 14 MiB that a process with a recording channel should not load.
# `memory_core` imports the whole core.
__getattr__ = late_exports(
    __name__,
    {
        "ChannelContract": "conformance.channel",
        "Fault": "conformance.messenger",
        "Messenger": "conformance.messenger",
        "PluginContract": "conformance.plugin",
        "BotCall": "core",
        "MemoryCore": "core",
        "memory_core": "core",
        "ReceivingContract": "conformance.channel",
        "Shown": "conformance.messenger",
        "cannot": "conformance.messenger",
        "channel_context": "core",
    },
)

__all__ = [
    "BotCall",
    "ChannelContract",
    "FakeClock",
    "Fault",
    "MemoryCore",
    "Messenger",
    "PluginContract",
    "ReceivingContract",
    "RecordingChannel",
    "RecordingPlugin",
    "Sent",
    "Shown",
    "cannot",
    "channel_context",
    "memory_core",
    "settled",
    "until",
]
