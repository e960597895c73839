"""The listening socket, and the limit of open files that its connections need."""

import resource
import socket

from msgsvc_core.config.sections import ServerSettings
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.server.connection_limits import SPARE_CONNECTIONS
from msgsvc_core.server.unix_socket import UnixListener

#: File descriptors besides clients' connections: databases, calls to messengers and webhooks, logs.
OTHER_FILES = 400


def listener_of(settings: ServerSettings) -> socket.socket:
    """The bound socket of `server.uds`, or of `server.host` and `server.port`. Raises `SettingsError`."""
    if settings.uds is not None:
        return UnixListener(settings.uds)
    return bind(settings.host, settings.port)


class TcpListener(socket.socket):
    """A TCP socket that says which setting to change if it can't listen.

    Two processes can bind one port as long as neither listens; the second to listen fails.
    """

    #: Where the operator names its address.
    setting = "server"

    def listen(self, backlog: int = socket.SOMAXCONN, /) -> None:
        """Raises `SettingsError` if another process has begun to listen there meanwhile."""
        try:
            super().listen(backlog)
        except OSError as error:
            host, port = self.getsockname()[:2]
            raise _refusal(self.setting, host, port, error) from error


def bind(host: str, port: int, setting: str = "server") -> TcpListener:
    """A bound socket that is not listening yet: early connections are refused.

    Raises `SettingsError`, naming the `setting`, if the address is not available.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, proto, _, address = found[0]
        listener = TcpListener(family, kind, proto)
        listener.setting = setting
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except (OSError, OverflowError) as error:
        raise _refusal(setting, host, port, error) from error
    return listener


def _refusal(setting: str, host: str, port: int, error: OSError | OverflowError) -> SettingsError:
    reason = getattr(error, "strerror", None) or str(error)
    return SettingsError(f"{setting}: can't listen on {host}, port {port}: {reason}; name another")


def check_open_files(settings: ServerSettings) -> ServerSettings:
    """Raises this process's limit of open files to what `max_connections` needs.

    If that is not allowed, a configured `max_connections` raises `SettingsError`, and the default is lowered
    to fit: without a file descriptor for the next connection a process accepts no more at all.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = settings.max_connections + SPARE_CONNECTIONS + OTHER_FILES
    if hard == resource.RLIM_INFINITY or needed <= hard:
        if soft != resource.RLIM_INFINITY and soft < needed:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
        return settings
    fitting = max(hard - SPARE_CONNECTIONS - OTHER_FILES, 10)
    if "max_connections" in settings.model_fields_set:
        raise SettingsError(
            f"server.max_connections: {settings.max_connections} connections need {needed} open "
            f"files, and this process may have {hard}; raise that (`ulimit -n`, LimitNOFILE= of "
            f"systemd), or set at most {fitting}"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return settings.model_copy(update={"max_connections": fitting})
