"""Hook implementations of the MAX channel."""

from collections.abc import Sequence

from msgsvc_core.channels import ChannelKind
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_max.channel import MaxChannel
from msgsvc_max.settings import OPERATOR_SETTINGS, MaxSettings


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [ChannelKind("max", MaxSettings, MaxChannel, OPERATOR_SETTINGS, title="MAX")]
