"""Each update of the corpus becomes what the table beside it says."""

import json
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from msgsvc_devkit.corpora import Item, outcome_of, read_corpus
from msgsvc_max.updates import read_updates

CORPUS = read_corpus(Path(__file__).parent / "corpus" / "updates.md")

#: What the messages of the table have in common; they may say otherwise.
COMMON: dict[str, Any] = {
    "recipient": {"chat_id": 7, "chat_type": "dialog"},
    "sender": {"user_id": 5, "first_name": "Ann", "is_bot": False},
    "timestamp": 1_775_053_255_737,
}


def update_of(raw: str) -> Any:
    found = json.loads(raw)
    if not isinstance(found, dict):
        return found
    if isinstance(found.get("message"), dict):
        found["message"] = {**COMMON, **found["message"]}
    return {"timestamp": 1_775_025_604_499, "user_locale": "ru", **found}


def outcome(raw: str) -> str:
    with capture_logs() as logs:
        updates = list(read_updates([update_of(raw)], "messenger_a"))
    return outcome_of(updates, logs)


@pytest.mark.parametrize("item", CORPUS, ids=str)
def test_an_update_becomes_what_the_table_says(item: Item) -> None:
    assert outcome(item.raw) == item.becomes


def test_one_odd_update_costs_itself_alone() -> None:
    fine = sum(item.becomes not in {"ignored", "skipped"} for item in CORPUS)
    updates = read_updates([update_of(item.raw) for item in CORPUS], "messenger_a")

    assert sum(outcome_of([update]) != "skipped" for update in updates) == fine
