"""Subscribers: the people of a project, one for each channel that they use."""

from msgsvc_core.subscribers.models import Source, Subscriber
from msgsvc_core.subscribers.service import Subscribers

__all__ = ["Source", "Subscriber", "Subscribers"]
