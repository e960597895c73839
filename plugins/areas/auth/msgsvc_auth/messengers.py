"""What pages call a messenger: a channel's name in the API is the operator's, and not made for people."""

from msgsvc_auth.settings import AuthSettings
from msgsvc_core.channels import Channels


def messenger_name(
    settings: AuthSettings, channels: Channels, channel: str, project_id: str
) -> str:
    """As `messenger_names` has it; else as its kind is called, "Telegram"."""
    known = settings.messenger_names.get(channel)
    return known or channels.display_name(channel, project_id)
