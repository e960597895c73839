"""The dashboard, the alerts and the list of metrics speak of what `/metrics` says."""

import json
import re
from functools import cache
from typing import Any

import yaml

from msgsvc_core.config.settings import Settings
from msgsvc_core.server import ConnectionLimits
from msgsvc_core.service import Service
from msgsvc_devkit.services import SECRET_KEY
from tests.architecture.tree import ROOT, assert_none, source_of

DEPLOY = ROOT / "contrib" / "deploy"

#: Names of ours and of the process as they stand in queries; what precedes `{`, `[` or an operator.
NAME = re.compile(r"\b((?:msgsvc|process)_[a-z0-9_]+)")
MATCHER = re.compile(r'(\w+\s*[=!]~?)\s*"[^"]*"')
LABELS = re.compile(r"\b((?:msgsvc|process)_[a-z0-9_]+)\{([^}]*)\}")

#: Metrics that Prometheus makes by itself.
BY_PROMETHEUS = re.compile(r"\b(up|ALERTS)\{")

#: Labels that Prometheus adds to everything it scrapes.
ADDED = {"job", "instance"}


@cache
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


@cache
def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(source_of(DEPLOY / "grafana" / "msgsvc.json"))
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def expressions() -> list[str]:
    alerts = yaml.safe_load(source_of(DEPLOY / "alerts.yml"))
    rules = [rule for group in alerts["groups"] for rule in group["rules"]]
    return [*queries(), *(rule["expr"] for rule in rules)]


def test_queries_ask_for_what_there_is() -> None:
    wrong = []
    for expression in expressions():
        names = set(NAME.findall(expression))
        if not names and not BY_PROMETHEUS.search(expression):
            wrong.append(f"{expression}: asks for no metric")
        wrong += [f"{expression}: there is no {name}" for name in names - figures().keys()]
        for name, matchers in LABELS.findall(expression):
            labels = {
                label.strip().partition("=")[0].rstrip("!~ ") for label in MATCHER.findall(matchers)
            }
            unknown = labels - figures().get(name, set()) - ADDED
            wrong += [f"{expression}: {name} has no label {label}" for label in unknown]

    assert len(expressions()) > 90
    assert_none(wrong)


def ours() -> list[str]:
    """Our metrics, but for the halves of histograms and what says when a counter was made."""
    return sorted(
        name
        for name in figures()
        if name.startswith("msgsvc_") and not name.endswith(("_created", "_sum", "_count"))
    )


def test_the_dashboard_shows_every_metric() -> None:
    variables = [variable.get("definition", "") for variable in dashboard()["templating"]["list"]]
    text = "\n".join([*queries(), *variables])

    assert len(ours()) > 30
    assert_none(name for name in ours() if not re.search(rf"\b{name}\b", text))


def test_the_page_on_running_explains_every_metric() -> None:
    page = source_of(ROOT / "docs" / "run.md")

    assert_none(name for name in ours() if f"`{name.removesuffix('_bucket')}" not in page)


def test_every_panel_asks_the_data_source_that_is_chosen() -> None:
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    askers = [asker for panel in panels() for asker in (panel, *panel["targets"])]

    assert dashboard()["templating"]["list"][0]["type"] == "datasource"
    assert_none(asker for asker in askers if asker["datasource"] != chosen)


def test_panels_have_ids_of_their_own_and_don_t_overlap() -> None:
    ids = [panel["id"] for panel in dashboard()["panels"]]
    cells = [
        (x, y)
        for panel in dashboard()["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len(ids) == len(set(ids))
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_panels_have_a_description_a_unit_and_the_chosen_processes() -> None:
    wrong = []
    for panel in panels():
        asked = " ".join(target["expr"] for target in panel["targets"])
        for what, is_there in {
            "a description": panel["description"].endswith("."),
            "a unit": panel["fieldConfig"]["defaults"]["unit"],
            # Alerts and targets are Prometheus' own; they have no instance, or are about the absent ones.
            "the chosen processes": "$instance" in asked or BY_PROMETHEUS.search(asked),
        }.items():
            if not is_there:
                wrong.append(f"{panel['title']} lacks {what}")

    assert len(panels()) > 50
    assert_none(wrong)


def test_variables_of_the_dashboard_are_labelled_and_used() -> None:
    variables = {each["name"]: each for each in dashboard()["templating"]["list"]}
    text = json.dumps(dashboard()["panels"] + dashboard()["links"]).replace("{", "")
    names = ("job", "instance", "channel", "endpoint", "docs")

    assert_none(name for name in names if not variables[name]["label"])
    assert_none(name for name in names if f"${name}" not in text)


def test_links_of_the_dashboard_lead_to_pages_of_the_documentation() -> None:
    text = json.dumps(dashboard())
    pages = set(re.findall(r"\$\{docs\}/([a-z/]+)\.html", text))

    assert pages == {"guides/monitoring", "run"}
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
    guide = source_of(ROOT / "docs" / "guides" / "monitoring.md")
    assert f"-t {provider['options']['path']} contrib/deploy/grafana/msgsvc.json" in guide
