"""What Prometheus reads of a service: how much, how fast, how many are waiting."""

from msgsvc_core.metrics.metrics import Metrics

__all__ = ["Metrics"]
