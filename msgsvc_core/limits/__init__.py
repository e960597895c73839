"""Rate limits: exact sliding windows behind one contract."""

from msgsvc_core.limits.contract import Limiter, WhenAway, Window
from msgsvc_core.limits.memory import MemoryLimiter

__all__ = ["Limiter", "MemoryLimiter", "WhenAway", "Window"]
