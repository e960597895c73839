"""What `msgsvc doctor` looks at in the configuration itself, before anything is started."""

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
from msgsvc_core.plugins.loading import load_plugins

#: Different characters that a random key of 32 hex digits has with near certainty.
MIN_DIFFERENT_CHARACTERS = 8

#: Seconds for a connection on this machine.
CONNECT_S = 1.0

#: Parts of keys that were copied from some example.
EXAMPLE_WORDS = ("change", "example", "secret", "password", "1234567", "abcdefg")


def check_file(path: Path | None) -> Iterator[Finding]:
    """Who else can read the file: it holds the secret keys."""
    if path is None:
        yield ok("settings", "read from the environment")
    elif path.stat().st_mode & 0o077:
        text = f"{path} can be read by other users of this machine, and holds the secret keys"
        yield warning("settings", text, f"chmod 600 {path}")
    else:
        yield ok("settings", f"read from {path}")


def check_secret_keys(settings: Settings) -> Iterator[Finding]:
    """Whether the keys look random. Their length has been checked with the settings."""
    fix = "let `msgsvc init` make a file with a random one, elsewhere, and copy its `secret_keys`"
    for number, key in enumerate(settings.secret_keys, start=1):
        text = key.get_secret_value().lower()
        if any(word in text for word in EXAMPLE_WORDS):
            yield problem("secret keys", f"key {number} looks like that of an example", fix)
        elif len(set(text)) < MIN_DIFFERENT_CHARACTERS:
            yield problem("secret keys", f"key {number} is too regular to be random", fix)
        else:
            yield ok("secret keys", f"key {number} is long enough and looks random")


def check_addresses(settings: Settings) -> Iterator[Finding]:
    """Whether the links that people get lead to where the service listens."""
    url, server = urlsplit(settings.base_url), settings.server
    host = url.hostname or ""
    port = url.port or (443 if url.scheme == "https" else 80)
    if _is_local(host) and server.port not in {0, port}:
        # Somebody before us may listen there, who hands on to several processes.
        if server.trusted_proxies:
            yield ok("base_url", f"{settings.base_url}, which a proxy hands on to {server.port}")
        elif _listens(host, port):
            yield warning(
                "base_url",
                f"links lead to port {port} of this machine, where something listens; this service does on"
                f" {server.port}",
                "if that is a proxy, name it in trusted_proxies of [server]; else correct base_url",
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
            f"the service listens on {server.host}, but its links lead to {host}, which other "
            "devices take for themselves",
            "set base_url to the address under which phones and sites reach this machine",
        )
    elif not _is_local(host) and url.scheme == "http":
        yield warning(
            "base_url",
            "sign-in codes and API keys travel unencrypted",
            "put a proxy with TLS before the service, and set base_url to its https address",
        )
    else:
        yield ok("base_url", settings.base_url)


def check_proxies(settings: Settings) -> Iterator[Finding]:
    """Whether the proxy that must be there is one that says who its callers are."""
    if settings.base_url.startswith("https:") and not settings.server.trusted_proxies:
        # We speak no TLS, so somebody stands before us who does.
        yield warning(
            "trusted_proxies",
            "the service is known by an https address, so a proxy stands before it, and every"
            " caller seems to have the proxy's address",
            'name it, e.g. trusted_proxies = ["127.0.0.1"] in [server]',
        )


def check_limits(settings: Settings) -> Iterator[Finding]:
    """Whether limits hold over all processes that share a database."""
    if settings.database_url.startswith("postgresql:") and settings.redis_url is None:
        yield ok(
            "limits",
            "of requests: counted by each process alone; with several on this database set redis_url",
        )


def check_with_plugins(settings: Settings) -> Iterator[Finding]:
    """What the plugins themselves say. One that can't be loaded is a finding of `check_plugins`."""
    for name in settings.plugins:
        with suppress(PluginError):
            hook = load_plugins([name]).hook
            yield from flatten(hook.review_settings(settings=settings))


def check_jobs(settings: Settings) -> Iterator[Finding]:
    """Whether the process that takes requests also does the work that follows from them."""
    if settings.jobs.runner == "none":
        yield warning(
            "jobs",
            'jobs.runner is "none": this process delivers nothing',
            'run another on the same database, with jobs.runner = "embedded" or "dramatiq"',
        )


def check_plugins(settings: Settings) -> Iterator[Finding]:
    """Each plugin by itself, so that every broken one is named at once."""
    for name in settings.plugins:
        try:
            load_plugins([name])
        except PluginError as error:
            yield problem("plugins", str(error), f"or take {name!r} out of `plugins`")
        else:
            yield ok("plugins", f"{name} can be loaded")
    if not settings.plugins:
        names = ", ".join(f'"{name}"' for name in default_plugins()[:2])
        fix = f"name some: plugins = [{names}]" if names else "install some, and name them"
        yield warning("plugins", "none is loaded", fix)


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
