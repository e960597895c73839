"""Display names of messengers on sign-in pages, since channel names in the API are technical."""

from msgsvc_auth.settings import AuthSettings
from msgsvc_core.channels import Channels


def messenger_name(
    settings: AuthSettings, channels: Channels, channel: str, project_id: str
) -> str:
    """The name in `messenger_names`, else that of its kind, "Telegram"."""
    known = settings.messenger_names.get(channel)
    return known or channels.display_name(channel, project_id)
