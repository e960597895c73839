"""The plugin's door: it brings the kind of messenger `letterbox`."""

from collections.abc import Sequence

from msgsvc_core.channels import ChannelKind
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_letterbox.channel import LetterboxChannel
from msgsvc_letterbox.settings import LetterboxSettings


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    # A project that could choose the folder for a bot of its own could write files anywhere.
    operators = frozenset({"folder"})
    return [ChannelKind("letterbox", LetterboxSettings, LetterboxChannel, operators)]
