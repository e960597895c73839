"""Settings in environment variables, and in files that these name."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ENV_PREFIX = "MSGSVC_"

#: Ends the name of a variable with the path of a file that holds the value. With two underscores, as nested
#: settings have them: `MSGSVC_CHANNELS__MAX__CA_FILE` is a setting of its own.
FILE_SUFFIX = "__FILE"

#: Maximum size of such a file: a wrong path must not load a database into memory.
MAX_FILE_BYTES = 64 * 1024

#: Variables with our prefix that are not settings: options of commands, among them the URL and the key with
#: which programs call the service, and those of the tests.
ENV_NOT_SETTINGS = (
    "MSGSVC_CONFIG",
    "MSGSVC_COPY_TO",
    "MSGSVC_INIT_TOKEN",
    "MSGSVC_URL",
    "MSGSVC_API_KEY",
    "MSGSVC_TEST_",
)

#: Variables that Kubernetes injects into every container for a Service named `msgsvc` or `msgsvc-...`.
_OF_KUBERNETES = re.compile(
    r"MSGSVC_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


class UnusableVariables(ValueError):
    """The variables can't be read as settings; the text names them, and no value."""


class ContradictoryVariables(UnusableVariables):
    """One variable sets a setting, and another sets it too, or a part of it."""


class UnreadableFile(UnusableVariables):
    """The file that a variable names gives no value."""


def read_environment(env: Mapping[str, str]) -> dict[str, Any]:
    """Settings by name, sections as nested mappings.

    `MSGSVC_SECRET_KEYS__FILE=/run/secrets/keys` takes the value of `MSGSVC_SECRET_KEYS` from that file.
    Raises `ContradictoryVariables` and `UnreadableFile`.
    """
    values: dict[str, Any] = {}
    for name, text in _variables(env):
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


def _variables(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Names and values of settings, those in files as if they were set themselves."""
    for name, text in env.items():
        if not name.startswith(ENV_PREFIX) or name.startswith(ENV_NOT_SETTINGS):
            continue
        if _OF_KUBERNETES.fullmatch(name) and "__" not in name:
            continue
        if not name.endswith(FILE_SUFFIX):
            yield name, text
            continue
        variable = name.removesuffix(FILE_SUFFIX)
        if variable in env:
            raise ContradictoryVariables(f"{name}: contradicts {variable}, which is set too")
        yield variable, _read_file(name, Path(text))


def _read_file(variable: str, path: Path) -> str:
    """The text of the file, without the line break at its end that editors and `echo` add."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        text = content.decode("utf-8").rstrip("\r\n")
    except OSError as error:
        raise UnreadableFile(f"{variable}: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnreadableFile(f"{variable}: {path}: is not a text in UTF-8") from None
    if len(content) > MAX_FILE_BYTES:
        raise UnreadableFile(f"{variable}: {path}: has more than {MAX_FILE_BYTES} bytes")
    if not text:
        raise UnreadableFile(f"{variable}: {path}: is empty")
    return text


def _parse(text: str) -> Any:
    """Lists and tables are parsed as JSON; everything else is text that pydantic converts."""
    if text[:1] in {"[", "{"}:
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
