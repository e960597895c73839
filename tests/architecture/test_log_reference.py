"""docs/reference/logs.md names every event that the code logs, with its fields."""

import re

import httpx2
import pytest
import structlog.testing

from msgsvc_core.cli.log_reference import COMMON_FIELDS, FIELDS, lines_in
from msgsvc_devkit.fixtures import Tenant
from tests.architecture.tree import CORE, ROOT, assert_none, files_in, plugin_packages, source_of

#: A statement that logs, as its text looks: an independent look at the same source.
LOGS = re.compile(r"\blog\.(?:debug|info|warning|error|exception)(?:\(|,)\s*\"(\w+)\"")


def documented() -> dict[str, set[str]]:
    """The fields of each event, as the page has them."""
    page = source_of(ROOT / "docs/reference/logs.md")
    rows = re.findall(r"^\| `(\w+)`\*? \| [^|]+ \| ([^|]*) \| `msgsvc", page, re.MULTILINE)
    return {event: set(re.findall(r"`(\w+)`", fields)) for event, fields in rows}


def test_every_event_of_the_source_is_on_the_page() -> None:
    found = {
        event
        for package in (CORE, *plugin_packages())
        for path in files_in(package, ".py")
        for event in LOGS.findall(source_of(path))
    }

    assert len(found) > 80
    assert_none(found - documented().keys(), "run `make docs`")


async def test_the_line_of_a_request_has_the_fields_of_the_page(
    tenant: Tenant, client: httpx2.AsyncClient
) -> None:
    with structlog.testing.capture_logs() as entries:
        await client.get("/v1/project")
    [line] = [entry for entry in entries if entry["event"] == "request"]
    fields = {name for name, value in line.items() if value is not None} - {"log_level"}

    assert fields - COMMON_FIELDS.keys() == documented()["request"] - {"sample"}
    assert line["project_id"] == tenant.project.project_id


def test_no_field_is_described_that_no_event_has() -> None:
    assert set(FIELDS) == set().union(*documented().values())


def test_the_event_may_be_an_argument_of_the_function_around() -> None:
    source = """
AWAY = "away"

def repeat(step, failed):
    log.warning(failed, error="no")

repeat_all = [self.repeat(1, AWAY), self.repeat(2, "gone"), other(3, "unseen")]
"""
    assert [(line.event, line.level, line.fields) for line in lines_in(source, "m")] == [
        ("away", "warning", ("error",)),
        ("gone", "warning", ("error",)),
    ]


def test_fields_of_a_dictionary_and_a_callback_are_found() -> None:
    source = """
def stop(tx):
    told = {"reason": "x", "detail": "y"}
    tx.on_commit(partial(log.error, "stopped", channel=key, **told))
    structlog.get_logger(__name__).exception("failed", exc_info=error)
"""
    stopped, failed = lines_in(source, "m")

    assert (stopped.event, stopped.fields) == ("stopped", ("channel", "reason", "detail"))
    assert (failed.event, failed.fields, failed.has_exception) == ("failed", (), True)


def test_an_event_that_the_source_does_not_name_is_refused() -> None:
    with pytest.raises(ValueError, match="m:1: the log event is not a text"):
        lines_in("log.info(name_of(event))", "m")
