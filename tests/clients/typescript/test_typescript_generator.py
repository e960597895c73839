"""How the generator spells the document in TypeScript."""

import copy
import json
from typing import Any

import pytest

from contrib.clients.codegen.contract import (
    Array,
    Contract,
    ContractError,
    Literals,
    Map,
    Null,
    OneOf,
    Reference,
    Scalar,
    Type,
)
from contrib.clients.codegen.generate import DOCUMENT
from contrib.clients.codegen.typescript_client import camel, doc, generate, property_name, type_of


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DOCUMENT.read_text("utf-8"))
    return found


def generated(document: dict[str, Any], name: str) -> str:
    ((_, files),) = generate(Contract(document)).items()
    return files[name]


@pytest.mark.parametrize(
    ("kind", "spelled"),
    [
        (Scalar("integer"), "number"),
        (Scalar("any"), "unknown"),
        (Scalar("string", "date-time"), "string"),
        (Literals(("a", 1, True)), '"a" | 1 | true'),
        (Array(OneOf((Scalar("string"), Scalar("number")))), "Array<string | number>"),
        (Map(Reference("Button")), "Record<string, Button>"),
        (OneOf((Reference("Button"), Null())), "Button | null"),
        (OneOf((Scalar("integer"), Scalar("number"))), "number"),
    ],
)
def test_each_type_has_its_spelling(kind: Type, spelled: str) -> None:
    assert type_of(kind) == spelled


def test_names_are_camel_case_and_quoted_where_they_must_be() -> None:
    assert camel("send_batch") == "sendBatch"
    assert (property_name("external_id"), property_name("x-y")) == ("external_id", '"x-y"')


def test_a_description_can_t_end_its_comment() -> None:
    assert doc("Ends */ here.") == "/** Ends *\\/ here. */\n"


def test_long_descriptions_are_wrapped_and_lists_keep_their_lines() -> None:
    text = doc("word " * 60 + "\n\n- one\n- two", 2)

    assert max(map(len, text.splitlines())) <= 110
    assert text.startswith("  /**\n   * word word")
    assert text.endswith("   *\n   * - one\n   * - two\n   */\n")


def test_a_secret_in_an_answer_is_named_and_a_hidden_one_is_refused(
    document: dict[str, Any],
) -> None:
    assert '      secrets: ["secret"],\n' in generated(document, "resources.ts")
    changed = copy.deepcopy(document)
    schemas = changed["components"]["schemas"]
    schemas["ProjectTag"]["properties"]["secret"] = {"type": "string"}

    with pytest.raises(ContractError, match=r"list_tags: shows ProjectTag\.secret"):
        generate(Contract(changed))


def test_every_event_and_code_of_the_document_is_generated(document: dict[str, Any]) -> None:
    contract = Contract(document)
    events, errors = generated(document, "events.ts"), generated(document, "errors.ts")

    assert contract.events
    assert all(f'  "{event.name}": ' in events for event in contract.events)
    assert all(f'declare readonly code: "{code.code}"' in errors for code in contract.error_codes)
