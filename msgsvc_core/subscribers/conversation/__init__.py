"""What a person says to a bot about themselves: /start, /stop, /settings, /lang and /help."""

from msgsvc_core.subscribers.conversation.conversation import Conversation

__all__ = ["Conversation"]
