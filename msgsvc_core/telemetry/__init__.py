"""Prometheus metrics and structured logs."""

from msgsvc_core.telemetry.metrics import Metrics

__all__ = ["Metrics"]
