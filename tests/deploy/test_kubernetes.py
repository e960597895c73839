"""The manifests of Kubernetes: valid by its schema, restricted, with settings that the service takes."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from contrib.release.distributions import released_version
from tests.deploy.tools import GUIDE, KUBERNETES, documents, python_tool, settings_of

#: The oldest and the newest release of Kubernetes whose schemas the manifests are held against.
VERSIONS = ("1.30", "1.37")

MANIFESTS = sorted(set(KUBERNETES.glob("*.yaml")) - {KUBERNETES / "kustomization.yaml"})
KUSTOMIZATION = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text("utf-8"))


def objects(kind: str) -> dict[str, dict[str, Any]]:
    """The manifests of that kind by their name."""
    every = [each for path in MANIFESTS for each in documents(path)]
    return {each["metadata"]["name"]: each for each in every if each["kind"] == kind}


def pods() -> dict[str, dict[str, Any]]:
    """The template of each workload's pods, by the argument of its container."""
    found = {}
    for each in [*objects("Deployment").values(), *objects("Job").values()]:
        template = each["spec"]["template"]
        found[template["spec"]["containers"][0]["args"][0]] = template
    return found


PODS = pods()


def test_all_processes_are_there() -> None:
    assert sorted(PODS) == ["migrate", "serve", "worker"]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_manifest_follows_the_schema_of_kubernetes(version: str) -> None:
    said = python_tool("kubernetes-validate", "--strict", "-k", version, *MANIFESTS)

    found = re.findall(r"passed for resource (\w+)/", said)
    assert len(found) == sum(len(documents(path)) for path in MANIFESTS)


def test_the_kustomization_has_all_manifests_and_no_other() -> None:
    assert sorted(KUSTOMIZATION["resources"]) == [path.name for path in MANIFESTS]
    assert KUSTOMIZATION["images"][0]["name"] == "msgsvc"


def test_kustomize_gives_every_pod_the_image_and_the_generated_settings() -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl, which brings kustomize, is missing; no package of Debian has it")
    done = subprocess.run(
        [kubectl, "kustomize", KUBERNETES], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    built = list(yaml.safe_load_all(done.stdout))
    (settings,) = (each["metadata"]["name"] for each in built if each["kind"] == "ConfigMap")
    templates = [
        each["spec"]["template"]["spec"] for each in built if "template" in each.get("spec", {})
    ]
    images = {spec["containers"][0]["image"] for spec in templates}

    assert len(templates) == 3
    assert images == {f"registry.example/msgsvc:{released_version()}"}
    assert {spec["volumes"][0]["configMap"]["name"] for spec in templates} == {settings}
    assert settings.startswith("msgsvc-")


@pytest.mark.parametrize("name", PODS)
def test_pods_meet_the_restricted_standard(name: str) -> None:
    spec = PODS[name]["spec"]
    pod, container = spec["securityContext"], spec["containers"][0]["securityContext"]

    assert pod["runAsNonRoot"] is True
    assert pod["runAsUser"] > 0
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["automountServiceAccountToken"] is False
    assert {next(iter(volume.keys() - {"name"})) for volume in spec["volumes"]} == {
        "configMap",
        "secret",
        "emptyDir",
    }


@pytest.mark.parametrize("name", PODS)
def test_the_service_can_be_built_with_a_pods_settings(tmp_path: Path, name: str) -> None:
    env = {each["name"]: each["value"] for each in PODS[name]["spec"]["containers"][0]["env"]}
    assert env.pop("MSGSVC_CONFIG") == "/etc/msgsvc/msgsvc.toml"
    settings = settings_of(KUBERNETES / "msgsvc.toml", env, tmp_path)

    assert settings.jobs.runner == "dramatiq"
    assert "sandbox" not in settings.plugins


@pytest.mark.parametrize("name", PODS)
def test_the_guide_makes_each_secret_that_a_pod_reads(name: str) -> None:
    spec = PODS[name]["spec"]
    read = {
        each["value"].removeprefix("/run/secrets/msgsvc/")
        for each in spec["containers"][0]["env"]
        if each["name"].endswith("__FILE")
    }

    assert read == set(re.findall(r"--from-file=(?:secrets/)?(\w+)", GUIDE.read_text("utf-8")))


@pytest.mark.parametrize("name", ["serve", "worker"])
def test_services_disruption_budgets_and_policies_find_the_pods(name: str) -> None:
    labels = PODS[name]["metadata"]["labels"].items()
    budget = objects("PodDisruptionBudget")[f"msgsvc-{name}"]["spec"]
    policy = objects("NetworkPolicy")["msgsvc"]["spec"]
    service = objects("Service")["msgsvc"]["spec"]

    assert budget["selector"]["matchLabels"].items() <= labels
    assert policy["podSelector"]["matchLabels"].items() <= labels
    assert (service["selector"].items() <= labels) == (name == "serve")


def test_the_ingress_leads_to_a_port_of_the_service_and_that_to_one_of_the_container() -> None:
    (rule,) = objects("Ingress")["msgsvc"]["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    (port,) = objects("Service")[backend["name"]]["spec"]["ports"]
    ports = PODS["serve"]["spec"]["containers"][0]["ports"]

    assert port["name"] == backend["port"]["name"]
    assert {each["name"]: each["containerPort"] for each in ports} == {port["targetPort"]: 8000}


@pytest.mark.parametrize("name", ["serve", "worker"])
def test_pods_get_longer_to_end_than_their_jobs(tmp_path: Path, name: str) -> None:
    env = {each["name"]: each["value"] for each in PODS[name]["spec"]["containers"][0]["env"]}
    env.pop("MSGSVC_CONFIG")
    settings = settings_of(KUBERNETES / "msgsvc.toml", env, tmp_path)
    needed_s = settings.server.drain_s + settings.jobs.grace_s

    # Open requests, and closing connections.
    assert PODS[name]["spec"]["terminationGracePeriodSeconds"] >= needed_s + 5 + 10
    assert (settings.server.drain_s > 0) == (name == "serve")
