"""`msgsvc jobs`: dead letters and waiting jobs, seen, run again and thrown away."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.config.settings import load_settings
from msgsvc_core.jobs import NewJob
from msgsvc_core.service import Service
from msgsvc_webhooks.models import CreateWebhookBody
from msgsvc_webhooks.service import Webhooks


async def _fill(config: Path) -> None:
    """Five jobs that nobody waits for: three dead ones, one that waits, one that runs."""
    service = Service(load_settings(config, env={}))
    await service.open_database()
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(
            tx,
            NewJob(
                "subscriber.erase",
                {"sealed": "gAAAA-sealed", "chat_id": "7"},
                lane="channel:a",
                key="k",
            ),
            NewJob("batch.complete", {"n": 1}, lane="webhook:1"),
            NewJob("batch.complete", {"n": 2}, lane="webhook:2"),
            NewJob(
                "batch.complete", {"n": 3, "auth": {"access_token": "hunter2"}}, lane="webhook:2"
            ),
            NewJob("running", {"n": 4}),
        )
        for state, where in (
            (
                "dead",
                "name = 'subscriber.erase' OR payload LIKE '{\"n\":1}' OR payload LIKE '{\"n\":2}'",
            ),
            ("running", "name = 'running'"),
        ):
            await tx.execute(
                "UPDATE core_jobs SET state = :state, attempts = 10, deliveries = 12,"
                f" last_error = 'OSError: away' WHERE {where}",
                {"state": state},
            )
    await service.db.disconnect()


@pytest.fixture
def filled(config: Path) -> Path:
    asyncio.run(_fill(config))
    return config


def listed(run: Any, *options: str) -> list[dict[str, Any]]:
    answer: dict[str, list[dict[str, Any]]] = json.loads(
        run("jobs", "list", "--json", *options).stdout
    )
    return answer["data"]


def by_number(run: Any, number: int) -> dict[str, Any]:
    return next(job for job in listed(run) if job["payload"].get("n") == number)


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ((), [None, 1, 2, 3, 4]),
        (("--state", "dead"), [None, 1, 2]),
        (("--state", "ready"), [3]),
        (("--lane", "webhook:2"), [2, 3]),
        (("--name", "batch.complete"), [1, 2, 3]),
        (("--name", "batch.complete", "--state", "dead", "--lane", "webhook:2"), [2]),
        (("--limit", "2"), [None, 1]),
        (("--name", "other"), []),
    ],
)
def test_jobs_are_listed_by_state_lane_and_name(
    run: Any, filled: Path, options: tuple[str, ...], numbers: list[int | None]
) -> None:
    found = listed(run, *options)

    # Those of one transaction were keyed ones last, so only what is in the list is compared.
    expected = len(numbers) if "--limit" in options else sorted(map(str, numbers))
    got = [job["payload"].get("n") for job in found]
    assert (len(got) if "--limit" in options else sorted(map(str, got))) == expected


def test_the_table_shows_whole_ids_and_the_last_error(run: Any, filled: Path) -> None:
    ids = [job["job_id"] for job in listed(run, "--state", "dead")]
    shown = run("jobs", "list", "--state", "dead").stdout

    assert all(job_id in shown for job_id in ids)
    assert shown.count("OSError: away") == 3


def test_a_state_that_there_is_not_is_refused(run: Any, filled: Path) -> None:
    assert run("jobs", "list", "--state", "done").exit_code == 2


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_sealed_and_secret_values_are_not_shown(
    run: Any, filled: Path, options: tuple[str, ...]
) -> None:
    shown = "".join(run("jobs", "show", job["job_id"], *options).stdout for job in listed(run))

    assert "sealed" in shown
    assert "access_token" in shown
    assert "gAAAA" not in shown
    assert "hunter2" not in shown
    assert '"chat_id": "7"' in shown


def test_a_dead_job_that_is_retried_has_all_its_attempts_again(run: Any, filled: Path) -> None:
    dead = by_number(run, 1)
    result = run("jobs", "retry", dead["job_id"])
    again = by_number(run, 1)

    assert result.exit_code == 0
    assert (again["state"], again["attempts"], again["deliveries"]) == ("ready", 0, 0)
    assert again["last_error"] is None
    assert again["due_at"] >= dead["due_at"]


def test_all_dead_jobs_of_a_name_are_retried_at_once(run: Any, filled: Path) -> None:
    answer = json.loads(run("jobs", "retry", "--name", "batch.complete", "--json").stdout)

    assert len(answer["retried"]) == 2
    assert [job["name"] for job in listed(run, "--state", "dead")] == ["subscriber.erase"]


def test_a_dead_job_whose_key_is_taken_again_stays_dead(run: Any, filled: Path) -> None:
    async def take_key() -> None:
        service = Service(load_settings(filled, env={}))
        await service.open_database()
        async with service.db.transaction() as tx:
            await service.jobs.enqueue(tx, NewJob("subscriber.erase", {"n": 9}, key="k"))
        await service.db.disconnect()

    asyncio.run(take_key())
    result = run("jobs", "retry", "--name", "subscriber.erase")

    assert result.exit_code == 1
    assert "another job with the same name and key is open" in result.stderr
    assert [job["state"] for job in listed(run, "--name", "subscriber.erase")].count("dead") == 1


def test_discarded_jobs_are_gone(run: Any, filled: Path) -> None:
    run("jobs", "discard", by_number(run, 3)["job_id"])
    run("jobs", "discard", "--lane", "webhook:1")

    assert sorted(str(job["payload"].get("n")) for job in listed(run)) == ["2", "4", "None"]


@pytest.fixture
def with_deliveries(config: Path) -> Path:
    """Jobs of two failed deliveries: the webhook of one is there, that of the other is not."""
    text = config.read_text("utf-8").replace("plugins = []", 'plugins = ["webhooks"]')
    config.write_text(text, encoding="utf-8")

    async def fill() -> None:
        service = Service(load_settings(config, env={}))
        await service.open_database()
        project_id = (await service.projects.create("Shop")).project_id
        async with service.db.transaction() as tx:
            webhooks = service.get(Webhooks)
            for number in range(3):
                body = CreateWebhookBody(url="https://shop.example/hook")
                webhook, _ = await webhooks.create(tx, project_id, body)
                await webhooks.send_test(tx, project_id, webhook.webhook_id)
                if number:
                    await webhooks.delete(tx, project_id, webhook.webhook_id)
            await tx.execute("UPDATE webhooks_deliveries SET status = 'failed'")
            await tx.execute("UPDATE core_jobs SET state = 'dead'")
        await service.db.disconnect()

    asyncio.run(fill())
    return config


def _column(config: Path, sql: str) -> list[str]:
    async def ask() -> list[str]:
        service = Service(load_settings(config, env={}))
        await service.open_database()
        async with service.db.read() as tx:
            rows = await tx.fetch_all(sql)
        await service.db.disconnect()
        return [next(iter(dict(row).values())) for row in rows]

    return asyncio.run(ask())


def _change(config: Path, sql: str) -> None:
    async def change() -> None:
        service = Service(load_settings(config, env={}))
        await service.open_database()
        async with service.db.transaction() as tx:
            await tx.execute(sql)
        await service.db.disconnect()

    asyncio.run(change())


def test_dead_jobs_of_a_name_are_put_back_by_their_plugin_or_refused_by_it(
    run: Any, with_deliveries: Path
) -> None:
    result = run("jobs", "retry", "--name", "webhooks.deliver")

    assert result.exit_code == 1
    assert result.stdout == "1 retried, 2 refused\n"
    assert result.stderr == "msgsvc: 2 refused: the webhook of this delivery was deleted\n"
    assert len(listed(run, "--state", "ready")) == 1
    statuses = _column(with_deliveries, "SELECT status FROM webhooks_deliveries")
    assert sorted(statuses) == ["failed", "failed", "pending"]


def test_each_job_that_is_refused_is_named_in_json(run: Any, with_deliveries: Path) -> None:
    result = run("jobs", "retry", "--name", "webhooks.deliver", "--json")
    answer = json.loads(result.stdout)

    assert len(answer["retried"]) == 1
    assert set(answer["refused"]) == {job["job_id"] for job in listed(run, "--state", "dead")}
    assert set(answer["refused"].values()) == {"the webhook of this delivery was deleted"}


def test_each_of_the_named_jobs_is_done_or_refused_by_itself(
    run: Any, with_deliveries: Path
) -> None:
    ids = [job["job_id"] for job in listed(run)]
    result = run("jobs", "retry", "job_none", *ids)

    assert result.stdout == "1 retried, 3 refused\n"
    assert "msgsvc: job_none: there is no such job" in result.stderr
    assert sum(job_id in result.stderr for job_id in ids) == 2


def test_who_waits_for_a_discarded_job_is_told(run: Any, with_deliveries: Path) -> None:
    run("jobs", "retry", "--name", "webhooks.deliver")
    [waiting] = listed(run, "--state", "ready")
    result = run("jobs", "discard", waiting["job_id"])

    assert result.exit_code == 0
    assert _column(with_deliveries, "SELECT status FROM webhooks_deliveries") == ["failed"] * 3


def test_a_job_stays_if_who_waits_for_it_can_t_be_told(run: Any, with_deliveries: Path) -> None:
    run("jobs", "retry", "--name", "webhooks.deliver")
    [waiting] = listed(run, "--state", "ready")
    # No delivery is named any more.
    _change(with_deliveries, "UPDATE core_jobs SET payload = '{}'")
    result = run("jobs", "discard", waiting["job_id"])

    assert result.stdout == "0 discarded, 1 refused\n"
    assert "could not be settled; the log says why" in result.stderr
    assert len(listed(run, "--state", "ready")) == 1


def test_a_dead_job_of_a_plugin_that_is_not_loaded_stays_dead(
    run: Any, with_deliveries: Path
) -> None:
    text = with_deliveries.read_text("utf-8").replace('["webhooks"]', "[]")
    with_deliveries.write_text(text, encoding="utf-8")
    result = run("jobs", "retry", "--name", "webhooks.deliver")

    assert result.stdout == "0 retried, 3 refused\n"
    assert "its plugin is not loaded" in result.stderr
    assert {job["state"] for job in listed(run)} == {"dead"}


@pytest.mark.parametrize("command", ["retry", "discard"])
def test_a_running_job_is_left_alone(run: Any, filled: Path, command: str) -> None:
    job_id = by_number(run, 4)["job_id"]
    result = run("jobs", command, job_id)

    assert result.exit_code == 1
    assert "it is running" in result.stderr
    assert by_number(run, 4)["state"] == "running"


@pytest.mark.parametrize("command", ["retry", "discard"])
def test_what_is_meant_must_be_said(run: Any, filled: Path, command: str) -> None:
    job_id = by_number(run, 1)["job_id"]

    assert run("jobs", command).exit_code == 2
    assert run("jobs", command, job_id, "--name", "batch.complete").exit_code == 2
    assert len(listed(run, "--state", "dead")) == 3


def test_a_job_that_there_is_not_is_refused_in_a_line(run: Any, filled: Path) -> None:
    result = run("jobs", "show", "job_none")

    assert result.exit_code == 1
    assert result.stderr.startswith("msgsvc: there is no job 'job_none'")
