"""Display names of messengers on sign-in pages: channel names in the API are not made for people."""

from msgsvc_auth.settings import AuthSettings
from msgsvc_core.channels import Channels


def messenger_name(
    settings: AuthSettings, channels: Channels, channel: str, project_id: str
) -> str:
    """As `messenger_names` has it; else as its kind is called, "Telegram"."""
    known = settings.messenger_names.get(channel)
    return known or channels.display_name(channel, project_id)
