"""The alerts of `contrib/deploy`: what they are made of, and when each of them fires."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring.situations import SITUATIONS, Series, Situation
from tests.monitoring.tools import ALERTS, CONFIGURATION, GUIDE, alerts, promtool, rules

RULES = {rule["alert"]: rule for rule in rules(alerts())}

#: Where a runbook is: the external label, and the page with the alert's name as its anchor.
RUNBOOK = "{{{{ $externalLabels.msgsvc_docs }}}}/guides/monitoring.html#{anchor}"

#: Minutes over which an alert must stay silent while nothing is wrong.
CALM_M = 60


def test_promtool_accepts_the_configuration_and_its_rules() -> None:
    said = promtool("check", "config", CONFIGURATION)

    assert f"{len(RULES)} rules found" in said


@pytest.mark.parametrize("name", RULES)
def test_an_alert_says_how_urgent_it_is_what_happens_and_where_to_read_on(name: str) -> None:
    rule = RULES[name]

    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert all(rule["annotations"].values())
    assert rule["annotations"]["runbook_url"] == RUNBOOK.format(anchor=name.lower())


def test_the_configuration_says_where_the_runbooks_are() -> None:
    configuration = yaml.safe_load(CONFIGURATION.read_text("utf-8"))

    assert configuration["rule_files"] == [ALERTS.name]
    assert configuration["global"]["external_labels"]["msgsvc_docs"].startswith("https://")


def test_the_guide_has_a_runbook_for_each_alert_and_for_no_other() -> None:
    headings = re.findall(r"^### (Msgsvc\w+)$", GUIDE.read_text("utf-8"), re.MULTILINE)

    assert sorted(headings) == sorted(RULES)


@pytest.mark.parametrize("name", RULES)
def test_a_runbook_says_how_urgent_it_is_and_what_to_look_at(name: str) -> None:
    section = GUIDE.read_text("utf-8").partition(f"\n### {name}\n")[2].partition("\n### ")[0]

    assert section.lstrip().startswith(f"**{RULES[name]['labels']['severity']}**")
    assert re.search(r"`[^`]+`", section), "a command, a setting, a metric or a log line to look at"


def test_each_alert_has_a_situation() -> None:
    assert sorted(each.alert for each in SITUATIONS) == sorted(RULES)


@pytest.fixture(scope="module")
def expressions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rules without annotations: promtool compares these too, and the run has them rendered."""
    groups = alerts()
    for rule in rules(groups):
        del rule["annotations"]
    path = tmp_path_factory.mktemp("rules") / "alerts.yml"
    path.write_text(yaml.safe_dump(groups), "utf-8")
    return path


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.alert)
def test_an_alert_fires_in_time_and_is_silent_in_what_looks_alike(
    situation: Situation, expressions: Path, tmp_path: Path
) -> None:
    labels = {"severity": RULES[situation.alert]["labels"]["severity"], **situation.labels}
    fires, at_m = [{"exp_labels": labels}], situation.fires_m
    tests = [
        unit_test(situation.alert, situation.trouble, {at_m - 1: [], at_m: fires, at_m + 1: fires}),
        unit_test(situation.alert, situation.calm, {minute: [] for minute in range(CALM_M)}),
    ]
    path = tmp_path / "test.yml"
    written = {"rule_files": [str(expressions)], "evaluation_interval": "1m", "tests": tests}
    path.write_text(yaml.safe_dump(written), "utf-8")

    promtool("test", "rules", path)


def unit_test(alert: str, series: Series, expected: Mapping[int, Sequence[Any]]) -> dict[str, Any]:
    """A test as promtool reads it: what of an alert fires at each of these minutes."""
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [
            {"alertname": alert, "eval_time": f"{minute}m", "exp_alerts": [*firing]}
            for minute, firing in expected.items()
        ],
    }
