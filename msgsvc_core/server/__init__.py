"""The HTTP server of `msgsvc serve`: uvicorn with connection limits."""

from msgsvc_core.server.connection_limits import ConnectionLimits
from msgsvc_core.server.figures import serving_metrics
from msgsvc_core.server.listener import bind, check_open_files, listener_of
from msgsvc_core.server.server import STOP_SIGNALS, Server, heeded
from msgsvc_core.server.unix_socket import check_uds

__all__ = [
    "STOP_SIGNALS",
    "ConnectionLimits",
    "Server",
    "bind",
    "check_open_files",
    "check_uds",
    "heeded",
    "listener_of",
    "serving_metrics",
]
