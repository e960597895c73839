"""The bench itself, for the shortest time that it takes."""

import json
import os
import sys
from pathlib import Path

import pytest

from msgsvc_devkit.databases import postgres_answers, postgres_url
from tests.bench import echo
from tests.bench.__main__ import main
from tests.bench.empty_jobs import REFERENCE
from tests.bench.jobs import findings
from tests.bench.load import Request, put_load
from tests.bench.report import Bound, Finding
from tests.process import start_server


def test_every_measurement_runs_to_its_end_and_writes_its_findings(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"

    main(
        # Jobs have a test of their own.
        "--only send status verify token yes deliver lane routes webhooks polls memory --databases sqlite"
        " --seconds 1 --rounds 1 --warm-up 0"
        f" --connections 4 --polls 20 --presses 5 --sends 200 --messages 500 --out {out}".split()
    )

    found = {finding["name"]: finding for finding in json.loads(out.read_text())}
    sent = found["send sqlite, taken in only: per s / echo"]
    assert sent["ratio"] == pytest.approx(sent["value"] / sent["reference"], rel=0.01)
    assert sent["met"] == (sent["ratio"] >= sent["target"] == 0.45)
    assert found["send sqlite: per s / FastAPI + ORM"]["reference"] > 0
    assert found["session status sqlite: per s / bare GET"]["value"] > 0
    assert found["verify sqlite: per s / echo"]["target"] == 0.2
    assert found["token sqlite: per s / bare signer"]["target"] == 0.6
    assert found["yes sqlite, same process: ms / the call"]["ratio"] > 0
    assert found["yes sqlite, same process: p99 ms behind"]["target"] == 100
    assert found["accept, deliver, record sqlite: per s / echo"]["value"] > 0
    assert found["one lane sqlite: per s / bare client"]["ratio"] > 0
    assert found["by a route, taken sqlite: per s / to a subscriber"]["value"] > 0
    assert found["by a route, refused first sqlite: per s / to a subscriber"]["ratio"] > 0
    assert found["webhooks sqlite: per s / bare client"]["ratio"] > 0
    assert found["20 idle long polls: KiB each"]["target"] == 20
    assert found["memory, idle: MiB"]["value"] > 10
    # What is measured beside the database is gone; only the findings stay.
    assert list(tmp_path.iterdir()) == [out]


def test_lists_are_measured_each_by_the_page_that_grows_most(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"

    main(f"--only lists --databases sqlite --rows 1000 --out {out}".split())

    found = json.loads(out.read_text())
    names = [finding["name"].partition(" ")[0] for finding in found]
    assert {"list_messages", "list_subscribers", "list_tickets", "list_tags"} <= {*names}
    assert len(names) == len({*names})
    assert {finding["target"] for finding in found} == {5}
    assert all(finding["value"] > 0 < finding["reference"] for finding in found)
    assert list(tmp_path.iterdir()) == [out]


def test_pages_of_lists_are_measured_each_by_the_filter_that_grows_most(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"

    main(f"--only pages --databases sqlite --rounds 1 --rows 1000 --out {out}".split())

    found = json.loads(out.read_text())
    names = [finding["name"].partition(" sqlite")[0] for finding in found]
    assert {"messages /messages", "subscribers /subscribers", "helpdesk /tickets"} <= {*names}
    assert len(names) == len({*names})
    assert {finding["target"] for finding in found} == {5}
    assert list(tmp_path.iterdir()) == [out]


def test_broadcasts_are_measured_without_peers_which_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bench.json"

    main(
        "--only broadcast tls paced --databases sqlite --rounds 1 --messages 200 --audience 400"
        f" --window 1 --out {out}".split()
    )

    found = {finding["name"]: finding for finding in json.loads(out.read_text())}
    assert "aiogram and python-telegram-bot are left out" in capsys.readouterr().out
    assert not [name for name in found if "aiogram" in name]
    assert found["broadcast sqlite: per s / bare client"]["ratio"] > 0
    assert found["broadcast over TLS sqlite: per s / bare client"]["ratio"] > 0
    assert found["broadcast sqlite: CPU µs a message, the dearest / the cheapest"]["ratio"] >= 1
    assert found["broadcast sqlite: growth over 500 messages, MiB"]["met"]
    for pace in (60_000, 150_000):
        kept = found[f"broadcast sqlite of {pace:,} a minute: per s / asked"]
        assert kept["reference"] == pace / 60
        assert kept["value"] > 0
    beside = found["send sqlite beside a broadcast of 1,000 a second: p99 ms / quiet"]
    assert beside["target"] == 1.25
    assert beside["value"] > 0


def test_what_a_message_costs_postgresql_is_counted_by_statement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not postgres_answers(postgres_url()):
        pytest.skip("PostgreSQL does not answer")
    out = tmp_path / "bench.json"

    main(
        "--only postgres --databases postgresql --statements --seconds 1 --warm-up 0"
        f" --connections 4 --messages 200 --out {out}".split()
    )

    found = {finding["name"]: finding for finding in json.loads(out.read_text())}
    printed = capsys.readouterr().out
    assert "broadcast: 200 messages; executed for each thousand of them" in printed
    assert "INSERT INTO core_messages" in printed
    for way in ("deliver", "broadcast"):
        of_way = {
            name.removeprefix(f"{way} postgresql: "): finding["value"]
            for name, finding in found.items()
            if name.startswith(f"{way} ")
        }
        assert of_way["round trips for 1,000"] >= of_way["statements for 1,000"] > 0
        assert of_way["WAL bytes each"] > of_way["full pages in the WAL for 1,000"]
        dead = of_way["dead tuples for 1,000"]
        assert dead >= of_way["dead tuples for 1,000, only VACUUM removes them"] > 0
        assert of_way["transactions for 1,000"] > 0
    assert list(tmp_path.iterdir()) == [out]


def test_large_deployments_are_measured_beside_small_ones(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"

    main(
        "--only scale --databases sqlite --projects 20 --slow-webhooks 4 --pages 60 --presses 5"
        f" --rows 1000 --window 1 --warm-up 0 --out {out}".split()
    )

    found = {finding["name"]: finding for finding in json.loads(out.read_text())}
    assert found["20 projects sqlite: KiB each"]["target"] == 20
    assert found["20 projects sqlite: seconds until ready / with 10"]["ratio"] > 0
    assert found["20 projects sqlite: ms for /readyz / with 10"]["ratio"] > 0
    healthy = "a healthy webhook among 3 slow ones sqlite"
    assert found[f"{healthy}: p99 ms / without them"]["ratio"] > 0
    # As many calls to each as it may have at once.
    assert found[f"{healthy}: connections / without them"]["value"] >= 24
    full = "1,000 messages and 100 subscribers sqlite"
    for what in ("POST /v1/send, p50", "sign-in status", "page of /v1/messages"):
        assert found[f"{full}, {what}: ms / of none"]["ratio"] > 0
    assert found[f"{full}, step of retention: ms / of none"]["target"] == 3
    purged = "1,000 messages, events and deliveries deleted, sqlite"
    assert found[f"{purged}: longest send ms / quiet"]["ratio"] > 0
    assert found["60 waiting sign-in pages sqlite: KiB each"]["target"] == 30
    assert found["a Yes among 60 waiting sign-in pages sqlite: ms / without them"]["ratio"] > 0
    assert list(tmp_path.iterdir()) == [out]


def test_what_a_message_costs_is_measured_by_number_of_processes(tmp_path: Path) -> None:
    if not postgres_answers(postgres_url()):
        pytest.skip("PostgreSQL does not answer")
    out = tmp_path / "bench.json"

    main(
        "--only scale-processes --databases postgresql --rounds 1 --messages 200 --window 1"
        f" --out {out}".split()
    )

    found = {finding["name"]: finding for finding in json.loads(out.read_text())}
    for number in (2, 4):
        cost = found[f"{number} processes postgresql: CPU µs a message / of 1"]
        assert cost["ratio"] > 0
        assert cost["target"] == 1.5
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("finding", "met"),
    [
        (Finding("a ratio", 45, 100, Bound(least=0.45)), True),
        (Finding("a ratio", 44, 100, Bound(least=0.45)), False),
        (Finding("a latency", 7, 1, Bound(most=6)), False),
        (Finding("a size", 89, bound=Bound(most=90), alone=True), True),
        (Finding("unasked", 1, 1), None),
        (Finding("not measured", None, 5, Bound(least=5)), None),
        (Finding("without its reference", 5, None, Bound(least=5)), None),
    ],
)
def test_a_target_bounds_the_ratio_or_the_value_of_what_stands_alone(
    finding: Finding, met: bool | None
) -> None:
    assert finding.met is met


def test_jobs_that_could_not_be_measured_are_findings_without_a_value() -> None:
    found = findings({REFERENCE: 1000.0, "embedded, sqlite": 6000.0})

    assert [finding.met for finding in found] == [True, None, None]


def test_where_wrk_is_missing_a_generator_of_our_own_makes_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    bodies = tmp_path / "bodies.jsonl"
    bodies.write_text('{"number": 1}\n{"number": 2}\n')
    paths = tmp_path / "paths"
    paths.write_text("/status\n/status?again\n")
    server = start_server([sys.executable, echo.__file__], tmp_path / "echo.log", os.environ)
    try:
        requests = {
            "posts": Request(f"{server.url}/v1/send", bodies, "key"),
            "keyed": Request(f"{server.url}/v1/send", bodies, "key", fresh_keys=True),
            "gets": Request(server.url, paths, "key", method="GET"),
            "astray": Request(f"{server.url}/nowhere", bodies, "key"),
        }
        loads = {
            name: put_load(request, connections=4, seconds=1, tick=lambda _: None)
            for name, request in requests.items()
        }
    finally:
        server.kill()

    astray = loads.pop("astray")
    assert astray.failed == astray.requests
    for load in loads.values():
        assert load.requests > 10
        assert 0 < load.p50_ms <= load.p99_ms
        assert load.failed == 0
