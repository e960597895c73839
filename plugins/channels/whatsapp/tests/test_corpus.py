"""Each change of the corpus becomes what the table beside it says."""

import json
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from msgsvc_devkit.corpora import Item, outcome_of, read_corpus
from msgsvc_whatsapp.updates import read_call

CORPUS = read_corpus(Path(__file__).parent / "corpus" / "updates.md")

NUMBER_ID = "106540352242922"

#: What the messages of the table have in common; they may say otherwise.
COMMON: dict[str, Any] = {"from_user_id": "US.1", "id": "wamid.1", "timestamp": "1"}


def change_of(raw: str) -> Any:
    """A change of a call, by what of its value the table names."""
    value = json.loads(raw)
    if isinstance(value.get("messages"), list):
        value["messages"] = [{**COMMON, **one} for one in value["messages"]]
    field = value.pop("field", "messages")
    metadata = {"phone_number_id": NUMBER_ID}
    contacts = [{"user_id": "US.1", "profile": {"name": "Ann"}}]
    return {"field": field, "value": {"metadata": metadata, "contacts": contacts, **value}}


def call_of(*raws: str) -> bytes:
    changes = [change_of(raw) for raw in raws]
    return json.dumps({"entry": [{"id": "1", "changes": changes}]}).encode()


def outcome(raw: str) -> str:
    with capture_logs() as logs:
        updates = read_call(b"{" if raw == "{" else call_of(raw), NUMBER_ID, "messenger_a")
    return outcome_of(updates, logs)


@pytest.mark.parametrize("item", CORPUS, ids=str)
def test_a_change_becomes_what_the_table_says(item: Item) -> None:
    assert outcome(item.raw) == item.becomes


def test_one_odd_change_costs_itself_alone() -> None:
    raws = [item.raw for item in CORPUS if item.raw != "{"]
    alone = [update for raw in raws for update in read_call(call_of(raw), NUMBER_ID, "messenger_a")]
    together = read_call(call_of(*raws), NUMBER_ID, "messenger_a")

    assert [outcome_of([each]) for each in together] == [outcome_of([each]) for each in alone]
