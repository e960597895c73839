"""People: the subscribers that share an `external_id`, one on each channel."""

from msgsvc_core.subscribers.people.service import People

__all__ = ["People"]
