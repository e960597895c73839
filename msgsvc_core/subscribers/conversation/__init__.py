"""Commands by which a person manages their subscriptions: /start, /stop, /settings, /lang and /help."""

from msgsvc_core.subscribers.conversation.conversation import Conversation

__all__ = ["Conversation"]
