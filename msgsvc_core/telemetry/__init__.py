"""What Prometheus reads of a service: how much, how fast, how many are waiting."""

from msgsvc_core.telemetry.metrics import Metrics

__all__ = ["Metrics"]
