"""Rate limits: exact sliding windows behind one contract."""

from msgsvc_core.limits.contract import Limiter, WhenAway, Window
from msgsvc_core.limits.memory import MemoryLimiter
from msgsvc_core.limits.stored import DatabaseLimiter, StoredHits

__all__ = ["DatabaseLimiter", "Limiter", "MemoryLimiter", "StoredHits", "WhenAway", "Window"]
