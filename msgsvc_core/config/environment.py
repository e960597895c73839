"""Settings in environment variables."""

import json
import re
from collections.abc import Mapping
from typing import Any

ENV_PREFIX = "MSGSVC_"

#: Variables with our prefix that are not settings: the path of the file, a token for `msgsvc init`, the URL
#: and the key with which programs call the service, and those of the tests.
ENV_NOT_SETTINGS = (
    "MSGSVC_CONFIG",
    "MSGSVC_INIT_TOKEN",
    "MSGSVC_URL",
    "MSGSVC_API_KEY",
    "MSGSVC_TEST_",
)

#: Variables that Kubernetes injects into every container for a Service named `msgsvc` or `msgsvc-...`.
_OF_KUBERNETES = re.compile(
    r"MSGSVC_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


class ContradictoryVariables(ValueError):
    """One variable sets a setting, and another sets a part of it."""


def read_environment(env: Mapping[str, str]) -> dict[str, Any]:
    """Settings by name, sections as nested mappings. Raises `ContradictoryVariables`."""
    values: dict[str, Any] = {}
    for name, text in env.items():
        if not name.startswith(ENV_PREFIX) or name.startswith(ENV_NOT_SETTINGS):
            continue
        if _OF_KUBERNETES.fullmatch(name) and "__" not in name:
            continue
        *parents, last = name.removeprefix(ENV_PREFIX).lower().split("__")
        target = values
        for parent in parents:
            target = target.setdefault(parent, {})
            if not isinstance(target, dict):
                raise ContradictoryVariables(
                    f"{name}: contradicts {ENV_PREFIX}{parent.upper()}, which is set too"
                )
        if isinstance(target.get(last), dict):
            raise ContradictoryVariables(f"{name}: contradicts {name}__..., which is set too")
        target[last] = _parse(text)
    return values


def _parse(text: str) -> Any:
    """Lists and tables are parsed as JSON; everything else is text that pydantic converts."""
    if text[:1] in {"[", "{"}:
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
