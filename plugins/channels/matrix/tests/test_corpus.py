"""Each event of the corpus becomes what the table beside it says."""

import json
from pathlib import Path
from typing import Any

import pytest

from msgsvc_devkit.corpora import Item, outcome_of, read_corpus
from msgsvc_matrix.rooms import Members
from msgsvc_matrix.updates import read_event

CORPUS = read_corpus(Path(__file__).parent / "corpus" / "updates.md")

#: What the events of the table have in common; they may say otherwise.
COMMON: dict[str, Any] = {"event_id": "$1", "sender": "@ann:x", "origin_server_ts": 1}

ME = "@bot:x"


def outcome(raw: str) -> str:
    members = Members(2, {"@ann:x": "Ann", ME: None})
    try:
        update = read_event({**COMMON, **json.loads(raw)}, "!room:x", members, ME)
    except ValueError:
        # The channel goes on with the next event.
        return "skipped"
    return outcome_of([] if update is None else [update])


@pytest.mark.parametrize("item", CORPUS, ids=str)
def test_an_event_becomes_what_the_table_says(item: Item) -> None:
    assert outcome(item.raw) == item.becomes
