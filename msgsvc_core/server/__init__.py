"""The HTTP server of `msgsvc serve`: uvicorn with connection limits."""

from msgsvc_core.server.connection_limits import ConnectionLimits
from msgsvc_core.server.figures import serving_metrics
from msgsvc_core.server.listener import bind, check_open_files
from msgsvc_core.server.server import Server

__all__ = ["ConnectionLimits", "Server", "bind", "check_open_files", "serving_metrics"]
