"""Erasure of subscribers."""

from msgsvc_core.subscribers.erasure.job import AGAIN_AFTER_S, WAITING_S, SubscriberErasure

__all__ = ["AGAIN_AFTER_S", "WAITING_S", "SubscriberErasure"]
