"""Messages: what a project sends to its subscribers, and what became of it."""

from msgsvc_core.messages.models import Message, SendBody
from msgsvc_core.messages.service import Messages

__all__ = ["Message", "Messages", "SendBody"]
