"""Rate limiters: exact sliding windows in memory, Redis or the database."""

from msgsvc_core.limits.contract import Limiter, WhenAway, Window
from msgsvc_core.limits.memory import MemoryLimiter
from msgsvc_core.limits.stored import DatabaseLimiter, StoredHits

__all__ = ["DatabaseLimiter", "Limiter", "MemoryLimiter", "StoredHits", "WhenAway", "Window"]
