"""Checks of `msgsvc doctor` that need only the configuration."""

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from msgsvc_core.config.defaults import default_plugins
from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.hooks import PluginError, flatten
from msgsvc_core.plugins.advice import Finding, ok, problem, warning
from msgsvc_core.plugins.loading import load_plugin_file, load_plugins, plugin_files

#: Minimum of distinct characters: a random key of 32 hex digits almost always has more.
MIN_DIFFERENT_CHARACTERS = 8

#: Seconds to wait for a connection to a local port.
CONNECT_S = 1.0

#: Files that Podman and Docker put into each container.
CONTAINER_MARKS = (Path("/run/.containerenv"), Path("/.dockerenv"))

#: Substrings of keys copied from examples.
EXAMPLE_WORDS = ("change", "example", "secret", "password", "1234567", "abcdefg")


def check_file(path: Path | None) -> Iterator[Finding]:
    """Whether other users can read the file, which contains the secret keys."""
    if path is None:
        yield ok("settings", "read from the environment")
    elif path.stat().st_mode & 0o077 and not in_container():
        text = f"{path} contains the secret keys and can be read by other users of this machine"
        yield warning("settings", text, f"chmod 600 {path}")
    else:
        yield ok("settings", f"read from {path}")


def check_secret_keys(settings: Settings) -> Iterator[Finding]:
    """Whether the keys look random. Loading the settings has checked their length."""
    fix = "write a new file with `msgsvc init --config`, and copy its random `secret_keys`"
    for number, key in enumerate(settings.secret_keys, start=1):
        text = key.get_secret_value().lower()
        if any(word in text for word in EXAMPLE_WORDS):
            yield problem("secret keys", f"key {number} looks like that of an example", fix)
        elif len(set(text)) < MIN_DIFFERENT_CHARACTERS:
            yield problem("secret keys", f"key {number} is too regular to be random", fix)
        else:
            yield ok("secret keys", f"key {number} is long enough and looks random")


def check_addresses(settings: Settings) -> Iterator[Finding]:
    """Whether `base_url` leads to the address that the service listens on."""
    url, server = urlsplit(settings.base_url), settings.server
    host = url.hostname or ""
    port = url.port or (443 if url.scheme == "https" else 80)
    if server.uds is not None and (_is_local(host) or url.scheme == "https"):
        yield ok("base_url", f"{settings.base_url}, which a proxy forwards to {server.uds}")
    elif in_container() and _is_local(host) and not _is_local(server.host):
        # Its ports are published on the machine, also under other numbers.
        yield ok("base_url", f"{settings.base_url}, to which port {server.port} is to be published")
    elif _is_local(host) and server.port not in {0, port}:
        # A proxy may listen on that port and forward to several processes.
        if server.trusted_proxies:
            yield ok("base_url", f"{settings.base_url}, which a proxy forwards to {server.port}")
        elif _listens(host, port):
            yield warning(
                "base_url",
                f"links lead to port {port} of this machine, where another process listens; this service"
                f" listens on {server.port}",
                "if that is a proxy, name it in trusted_proxies of [server]; otherwise correct base_url",
            )
        else:
            yield problem(
                "base_url",
                f"links lead to port {port} of this machine, but the service listens on {server.port}",
                f'set base_url = "{url.scheme}://{host}:{server.port}", or server.port = {port}',
            )
    elif _is_local(host) and not _is_local(server.host):
        yield warning(
            "base_url",
            f"the service listens on {server.host}, but its links lead to {host}, which on other "
            "devices means the device itself",
            "set base_url to the address at which phones and sites reach this machine",
        )
    elif not _is_local(host) and url.scheme == "http":
        yield warning(
            "base_url",
            "sign-in codes and API keys are sent unencrypted",
            "run a TLS proxy in front of the service, and set base_url to its https address",
        )
    else:
        yield ok("base_url", settings.base_url)


def check_proxies(settings: Settings) -> Iterator[Finding]:
    """Whether the TLS proxy is trusted to report client addresses."""
    server = settings.server
    if settings.base_url.startswith("https:") and not server.trusted_proxies and server.uds is None:
        # The service does not terminate TLS, so an https address implies a proxy.
        yield warning(
            "trusted_proxies",
            "base_url is https, so there is a proxy in front of the service; without trusted_proxies all"
            " clients appear to have the proxy's address",
            'add it, e.g. trusted_proxies = ["127.0.0.1"] in [server]',
        )


def check_limits(settings: Settings) -> Iterator[Finding]:
    """Whether processes that share a database share their rate limits too."""
    if settings.database_url.startswith("postgresql:") and settings.redis_url is None:
        yield ok(
            "limits",
            "each process counts requests by itself; with several processes, set redis_url",
        )


def check_with_plugins(settings: Settings) -> Iterator[Finding]:
    """The findings of the plugins themselves. `check_plugins` reports those that can't be loaded."""
    for name in settings.loaded_plugins:
        with suppress(PluginError):
            hook = load_plugins([name]).hook
            yield from flatten(hook.review_settings(settings=settings))
    for name, path in plugin_files(settings.plugins_dir).items():
        with suppress(PluginError):
            hook = load_plugins([], [(name, load_plugin_file(path))]).hook
            yield from flatten(hook.review_settings(settings=settings))


def check_quarantine(settings: Settings) -> Iterator[Finding]:
    """Whether the service sends at all."""
    if settings.quarantine:
        yield warning(
            "quarantine",
            "nothing is sent or received: jobs wait, and messengers are not called",
            "when this copy is to replace the original: end that one, and start without quarantine",
        )


def check_jobs(settings: Settings) -> Iterator[Finding]:
    """Whether the process that serves the API runs jobs too."""
    if settings.jobs.runner == "none":
        yield warning(
            "jobs",
            'jobs.runner is "none": this process delivers nothing',
            'run another on the same database, with jobs.runner = "embedded" or "dramatiq"',
        )


def check_plugins(settings: Settings) -> Iterator[Finding]:
    """Loads each plugin on its own, so that all broken ones are reported together."""
    for name in settings.loaded_plugins:
        try:
            load_plugins([name])
        except PluginError as error:
            yield problem("plugins", str(error), f"or remove {name!r} from `plugins`")
        else:
            yield ok("plugins", f"{name} can be loaded")
    files = plugin_files(settings.plugins_dir)
    for name, path in files.items():
        try:
            load_plugins([], [(name, load_plugin_file(path))])
        except PluginError as error:
            yield problem("plugins", str(error), f"or move {path} out of `plugins_dir`")
        else:
            yield ok("plugins", f"{name} can be loaded from {path}")
    usual = default_plugins()
    left = [name for name in usual if name not in settings.loaded_plugins]
    if settings.loaded_plugins and usual and left == list(usual):
        yield warning(
            "plugins",
            f"no area is loaded: `plugins` replaces the default, which is {', '.join(usual)}",
            "to add plugins to the default, name them in `extra_plugins` instead",
        )
    elif left:
        yield ok("plugins", f"not loaded: {', '.join(left)}")
    if not settings.loaded_plugins and not files:
        names = ", ".join(f'"{name}"' for name in default_plugins()[:2])
        fix = (
            f"add some: plugins = [{names}]" if names else "install some, and add them to `plugins`"
        )
        yield warning("plugins", "no plugin is loaded", fix)


def in_container() -> bool:
    """Whether other users of the machine, and its ports, are out of reach."""
    return "KUBERNETES_SERVICE_HOST" in os.environ or any(map(Path.exists, CONTAINER_MARKS))


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=CONNECT_S):
            return True
    except OSError:
        return False


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
