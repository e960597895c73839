"""compose.yaml: it is what the specification of Compose asks for, and the service can be built with it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.tools import DEPLOY, documents, python_tool, settings_of

#: Refuses what the specification does not know, and references to what is not declared.
CHECK = """\
import sys
from compose_spec import PyCompose
compose = PyCompose.from_json(sys.stdin.read())
compose.validate()
print(*sorted(compose.service_names()))
"""

OURS = ("migrate", "serve", "worker")


@pytest.fixture
def compose() -> dict[str, Any]:
    (loaded,) = documents(DEPLOY / "compose.yaml")
    return loaded


def test_it_is_valid_and_has_all_processes(compose: dict[str, Any]) -> None:
    # Merge keys of YAML are read here.
    said = python_tool("python", "-c", CHECK, given=json.dumps(compose))

    assert said.split() == ["migrate", "postgres", "redis", "serve", "worker"]


@pytest.mark.parametrize("name", OURS)
def test_the_service_can_be_built_with_its_settings(
    compose: dict[str, Any], tmp_path: Path, name: str
) -> None:
    service = compose["services"][name]
    variables = {**service["environment"]}
    file, target, access = service["volumes"][0].split(":")
    assert (variables.pop("MSGSVC_CONFIG"), access) == (target, "ro")
    settings = settings_of(DEPLOY / file, variables, tmp_path)

    assert settings.jobs.runner == "dramatiq"
    assert settings.metrics.token is not None


@pytest.mark.parametrize("name", OURS)
def test_secrets_are_files_that_the_container_is_given(compose: dict[str, Any], name: str) -> None:
    service = compose["services"][name]
    named = {
        value.removeprefix("/run/secrets/")
        for variable, value in service["environment"].items()
        if variable.endswith("__FILE")
    }

    assert named == set(service["secrets"])
    assert {compose["secrets"][secret]["file"] for secret in named} == {
        f"./secrets/{secret}" for secret in named
    }
    # No secret stands in the file itself.
    assert "PASSWORD" not in "".join(service["environment"])


@pytest.mark.parametrize("name", OURS)
def test_our_containers_can_do_no_more_than_they_must(compose: dict[str, Any], name: str) -> None:
    service = compose["services"][name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service


def test_databases_are_reached_by_our_containers_alone(compose: dict[str, Any]) -> None:
    for name in ("postgres", "redis"):
        service = compose["services"][name]

        assert service["networks"] == ["data"]
        assert "ports" not in service
    assert compose["networks"]["data"] == {"internal": True}


def test_processes_wait_for_the_migrations(compose: dict[str, Any]) -> None:
    for name in ("serve", "worker"):
        waits = compose["services"][name]["depends_on"]["migrate"]

        assert waits == {"condition": "service_completed_successfully"}
