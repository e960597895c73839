"""Subscribers: the users that a project's bots may write to, one per user and channel."""

from msgsvc_core.subscribers.models import Source, Subscriber
from msgsvc_core.subscribers.service import Subscribers

__all__ = ["Source", "Subscriber", "Subscribers"]
