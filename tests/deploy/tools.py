"""What reads manifests, as `make deploy-tools` installs it, and where they are."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import yaml

from msgsvc_core.config.settings import Settings, load_settings
from msgsvc_core.service import Service
from msgsvc_devkit import machine

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "contrib" / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
GUIDE = ROOT / "docs" / "guides" / "containers.md"
ENVIRONMENT = ROOT / ".venv" / "deploy-tools"

#: A value for each secret that a manifest names, of its kind.
SECRETS = {
    "secret_keys": "a-key-for-tests-only-a-key-for-tests-only\n",
    "database_url": "postgresql://msgsvc:hunter2@postgres/msgsvc\n",
    "redis_url": "redis://:hunter2@redis.example:6379/0\n",
    "metrics_token": "a-token-for-tests-only\n",
    "telegram_token": "123456:AAaaBBbbCCccDDddEEeeFFffGGggHHhhIIi\n",
}


def missing(what: str, how: str) -> NoReturn:
    """Skips the test, or fails it where everything has to be there."""
    reason = f"{what} is missing: {how}"
    machine.missing("containers", reason)


def python_tool(program: str, *arguments: str | Path, given: str = "") -> str:
    """What a program of that environment says of the text that it is given; the test fails if it refuses."""
    path = ENVIRONMENT / "bin" / program
    if not path.exists():
        missing(program, "make deploy-tools")
    done = subprocess.run(
        [path, *arguments],
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def documents(path: Path) -> list[dict[str, Any]]:
    """The documents of a file of YAML."""
    return list(yaml.safe_load_all(path.read_text("utf-8")))


def settings_of(toml: Path, variables: Mapping[str, str], folder: Path) -> Settings:
    """Settings as a container has them, whose files of secrets are in `folder` instead. Fails if the service
    can't be built with them."""
    env = {}
    for name, value in variables.items():
        if name.endswith("__FILE"):
            secret = Path(value).name
            (folder / secret).write_text(SECRETS[secret], "utf-8")
            env[name] = str(folder / secret)
        else:
            env[name] = value
    settings = load_settings(toml, env=env)
    Service(settings)
    return settings
