"""Messages that projects send to subscribers, and their outcomes."""

from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.models import Message
from msgsvc_core.messages.service import Messages

__all__ = ["Message", "Messages", "SendBody"]
