"""The dashboard, the alerts and the list of metrics speak of what `/metrics` says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from msgsvc_core.config.settings import Settings
from msgsvc_core.server import ConnectionLimits
from msgsvc_core.service import Service
from msgsvc_devkit.fakes.secrets import SECRET_KEY

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "contrib" / "deploy"
OPERATING = ROOT / "docs" / "operating.md"

#: Names of ours and of the process as they stand in queries; what precedes `{`, `[` or an operator.
NAME = re.compile(r"\b((?:msgsvc|process)_[a-z0-9_]+)")
MATCHER = re.compile(r'(\w+\s*[=!]~?)\s*"[^"]*"')
LABELS = re.compile(r"\b((?:msgsvc|process)_[a-z0-9_]+)\{([^}]*)\}")

#: Metrics that Prometheus makes by itself.
BY_PROMETHEUS = re.compile(r"\b(up|ALERTS)\{")

#: Labels that Prometheus adds to everything it scrapes.
ADDED = {"job", "instance"}


def figures() -> dict[str, set[str]]:
    """Every sample's name, with its labels, of a service with all our plugins that is served."""
    service = Service(Settings.model_validate({"secret_keys": (SECRET_KEY,)}))
    ConnectionLimits(service.settings.server, "", service.metrics)
    service.metrics.requests.observe("GET", "/v1/project", 200, 0.1)
    service.metrics.events.count([("auth.completed", "messenger_a")])
    service.metrics.count_deliveries(1, "messenger_a", "sent")
    service.metrics.channels.waited("messenger_a", 0.1)
    service.metrics.channels.refused("messenger_a", "bot")
    service.metrics.channels.outage_began("messenger_a")
    service.metrics.channels.delivered("messenger_a", 0.1)
    service.metrics.channels.received("messenger_a", "handled")
    found: dict[str, set[str]] = {}
    for family in service.metrics.registry.collect():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    # Known once the database was asked, which this service has not.
    found["msgsvc_jobs"] = {"lane", "state"}
    found["msgsvc_jobs_oldest_due_age_seconds"] = {"lane"}
    found["msgsvc_job_runners"] = set()
    found["msgsvc_channel_jobs"] = {"channel", "state"}
    found["msgsvc_channel_oldest_due_age_seconds"] = {"channel"}
    found["msgsvc_channels_stopped"] = {"channel"}
    found["msgsvc_channel_paused_until_timestamp_seconds"] = {"channel"}
    found["msgsvc_channel_unavailable_since_timestamp_seconds"] = {"channel"}
    found["msgsvc_channel_reception_interrupted_since_timestamp_seconds"] = {"channel"}
    return found


FIGURES = figures()
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "msgsvc.json").read_text("utf-8"))
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
ALERTS = yaml.safe_load((DEPLOY / "alerts.yml").read_text("utf-8"))
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
EXPRESSIONS = [*QUERIES, *(rule["expr"] for rule in RULES)]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_query_asks_for_what_there_is(expression: str) -> None:
    names = NAME.findall(expression)
    by_labels = {
        name: {label.strip().partition("=")[0].rstrip("!~ ") for label in MATCHER.findall(labels)}
        for name, labels in LABELS.findall(expression)
    }

    assert names or BY_PROMETHEUS.search(expression)
    assert set(names) <= set(FIGURES)
    for name, labels in by_labels.items():
        assert labels <= FIGURES[name] | ADDED


def ours() -> list[str]:
    """Our metrics, but for the halves of histograms and what says when a counter was made."""
    return sorted(
        name
        for name in FIGURES
        if name.startswith("msgsvc_") and not name.endswith(("_created", "_sum", "_count"))
    )


@pytest.mark.parametrize("name", ours())
def test_the_dashboard_shows_every_metric(name: str) -> None:
    variables = [variable.get("definition", "") for variable in DASHBOARD["templating"]["list"]]

    assert any(re.search(rf"\b{name}\b", text) for text in [*QUERIES, *variables])


@pytest.mark.parametrize("name", ours())
def test_the_page_on_operating_explains_every_metric(name: str) -> None:
    assert f"`{name.removesuffix('_bucket')}" in OPERATING.read_text("utf-8")


def test_every_panel_asks_the_data_source_that_is_chosen() -> None:
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    panels = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]

    assert DASHBOARD["templating"]["list"][0]["type"] == "datasource"
    assert all(panel["datasource"] == chosen for panel in panels)
    assert all(target["datasource"] == chosen for panel in panels for target in panel["targets"])


def test_panels_have_ids_of_their_own_and_don_t_overlap() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len(ids) == len(set(ids))
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"] if panel["type"] != "row"}


@pytest.mark.parametrize("title", PANELS)
def test_a_panel_has_a_description_a_unit_and_the_chosen_processes(title: str) -> None:
    panel = PANELS[title]
    expressions = " ".join(target["expr"] for target in panel["targets"])

    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    # Alerts and targets are Prometheus' own; they have no instance, or are about the absent ones.
    assert "$instance" in expressions or BY_PROMETHEUS.search(expressions)


@pytest.mark.parametrize("name", ["job", "instance", "channel", "endpoint", "docs"])
def test_a_variable_of_the_dashboard_is_used(name: str) -> None:
    [variable] = [each for each in DASHBOARD["templating"]["list"] if each["name"] == name]

    assert variable["label"]
    assert f"${name}" in json.dumps(DASHBOARD["panels"] + DASHBOARD["links"]).replace("{", "")


def test_links_of_the_dashboard_lead_to_pages_of_the_documentation() -> None:
    text = json.dumps(DASHBOARD)
    pages = set(re.findall(r"\$\{docs\}/([a-z/]+)\.html", text))

    assert pages == {"guides/monitoring", "operating"}
    assert all((ROOT / "docs" / f"{page}.md").exists() for page in pages)


def test_grafana_is_provisioned_with_the_dashboard_and_a_data_source() -> None:
    folder = DEPLOY / "grafana" / "provisioning"
    sources = yaml.safe_load((folder / "datasources" / "msgsvc.yml").read_text("utf-8"))
    providers = yaml.safe_load((folder / "dashboards" / "msgsvc.yml").read_text("utf-8"))
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))

    [source], [provider] = sources["datasources"], providers["providers"]
    assert (sources["apiVersion"], source["type"]) == (1, "prometheus")
    assert source["jsonData"]["timeInterval"] == scraped["global"]["scrape_interval"]
    assert (providers["apiVersion"], provider["type"]) == (1, "file")
    guide = (ROOT / "docs" / "guides" / "monitoring.md").read_text("utf-8")
    assert f"-t {provider['options']['path']} contrib/deploy/grafana/msgsvc.json" in guide
