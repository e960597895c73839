"""Settings of an ephemeral service."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgsvc_core.config.defaults import default_channels, default_plugins
from msgsvc_core.config.environment import UnusableVariables, read_environment
from msgsvc_core.config.settings import Settings, load_settings
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.kernel.ids import new_token
from msgsvc_core.plugins.loading import available_plugins

#: Bits of its secret key.
SECRET_KEY_BITS = 256

#: In practice without limit, where a suite of tests is one project and one address.
PLENTY = 1_000_000

#: Address ranges of this machine, which webhooks and files may be on.
LOOPBACK = ("127.0.0.0/8", "::1/128")

#: Settings that lead out of the process: a deployment's variables, left in the environment.
OF_A_DEPLOYMENT = ("database_url", "redis_url", "secret_keys")

_CORE: dict[str, Any] = {
    "sqlite_synchronous": "NORMAL",
    "limits": {
        "requests_per_minute": PLENTY,
        "qr_per_minute_per_address": PLENTY,
        "tags": 500,
        "permissions": 100,
        "templates": 1000,
    },
    "log": {"level": "warning"},
}

#: By plugin and section. Limits of a project or an address are those of who serves their own users, or
#: more; limits of one person are the defaults, which a program under test has to respect.
_PLUGINS: dict[str, dict[str, Any]] = {
    "auth": {
        "sessions_per_hour": PLENTY,
        "sessions_per_hour_per_address": PLENTY,
        "pages_per_hour_per_address": PLENTY,
    },
    # With the default cost each password takes a tenth of a second.
    "dashboard": {"password_memory_kib": 8, "password_passes": 1},
    "forms": {
        "forms_per_project": 200,
        "submissions_per_minute": PLENTY,
        "submissions_per_minute_per_address": PLENTY,
    },
    "scheduling": {"open_records": 10_000},
    "webhooks": {"allow_http": True, "allow_cidrs": LOOPBACK, "endpoints_per_project": 50},
}


def ephemeral_settings(
    folder: Path, base_url: str, env: Mapping[str, str], **given: Any
) -> Settings:
    """Settings with all installed plugins, a database in `folder` and a key of their own.

    `env` may change any but those that lead to a deployment's data; `given` comes before it. Raises
    `SettingsError`.
    """
    try:
        named = read_environment(env)
    except UnusableVariables as error:
        raise SettingsError(str(error)) from None
    _refuse_deployment(named)
    plugins = named.get("plugins") or given.get("plugins") or installed_plugins()
    values: dict[str, Any] = {
        **_CORE,
        **{name: section for name, section in _PLUGINS.items() if name in plugins},
        "plugins": plugins,
        "channels": {name: {"plugin": kind} for name, kind in default_channels().items()},
    }
    own = {
        "database_url": f"sqlite:///{folder / 'msgsvc.db'}",
        "secret_keys": [new_token(SECRET_KEY_BITS)],
    }
    for source in ({"base_url": base_url}, named, given, own):
        values = _merged(values, source)
    return load_settings(None, env={}, **values)


def installed_plugins() -> list[str]:
    """The default plugins in their order, then the others by name."""
    first, there = default_plugins(), available_plugins()
    return [*(name for name in first if name in there), *sorted(there.keys() - set(first))]


def _refuse_deployment(named: Mapping[str, Any]) -> None:
    jobs = named.get("jobs")
    found = [f"MSGSVC_{name.upper()}" for name in OF_A_DEPLOYMENT if name in named]
    if isinstance(jobs, Mapping):
        found += [
            f"MSGSVC_JOBS__{name.upper()}" for name in ("runner", "broker_url") if name in jobs
        ]
    if found:
        raise SettingsError(
            f"--ephemeral: {', '.join(found)} is set, which belongs to a deployment; an ephemeral service"
            " has a database of its own and forgets it: unset the variable, or leave --ephemeral out"
        )


def _merged(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in top.items():
        below = merged.get(name)
        merged[name] = (
            _merged(below, value)
            if isinstance(value, Mapping) and isinstance(below, Mapping)
            else value
        )
    return merged
