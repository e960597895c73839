"""Commands for subscribers: /start, /stop, /settings, /lang and /help."""

from msgsvc_core.subscribers.conversation.conversation import Conversation

__all__ = ["Conversation"]
