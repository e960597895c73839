"""Hook implementations: declares the channel kind `telegram`."""

from collections.abc import Sequence

from msgsvc_core.channels import ChannelKind
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_telegram.channel import TelegramChannel
from msgsvc_telegram.settings import TelegramSettings


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [
        ChannelKind(
            "telegram",
            TelegramSettings,
            TelegramChannel,
            operator_settings=frozenset({"base_url", "login_url", "proxy"}),
            title="Telegram",
        )
    ]
