"""What the generator of both clients reads from contrib/openapi.json, and that its files are up to date."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contrib.clients.codegen.contract import (
    Array,
    Contract,
    ContractError,
    Literals,
    Map,
    OneOf,
    Reference,
    Scalar,
)
from contrib.clients.codegen.generate import DOCUMENT, TARGETS, stale
from contrib.clients.codegen.names import DOTTED_NAMES, NOT_IN_CLIENTS
from contrib.clients.codegen.python_client import DOC_WIDTH, common_codes, method_doc, synced


@pytest.fixture(scope="module")
def contract() -> Contract:
    return Contract.read(DOCUMENT)


def test_generated_code_is_up_to_date(contract: Contract) -> None:
    wrong = {
        str(folder / name)
        for target in TARGETS
        for folder, files in target.generate(contract).items()
        for name in stale(folder, files)
    }

    assert not wrong, "run `make clients`"


def test_every_operation_has_a_name_and_every_name_an_operation(contract: Contract) -> None:
    operations = {
        operation["operationId"]
        for methods in contract.document["paths"].values()
        for operation in methods.values()
    }

    assert operations == set(DOTTED_NAMES) | (set(NOT_IN_CLIENTS) & operations)


def test_arguments_in_docstrings_fill_their_lines(contract: Contract) -> None:
    continued = " " * 16
    for method in contract.methods:
        for line, following in pairwise(method_doc(method).splitlines()):
            if following.startswith(continued):
                assert len(f"{line} {following.split()[0]}") > DOC_WIDTH, method.operation_id


def test_docstrings_name_the_error_codes_that_not_every_method_has(contract: Contract) -> None:
    method = method_of(contract, "messages.send")
    common = common_codes(contract)

    named = method_doc(method, common).split("Error codes: ")[1].rstrip('"').replace(",", " ")

    assert {"unauthorized", "rate_limit_project", "internal_error"} <= set(common)
    assert "subscriber_not_found" in named.split()
    assert set(named.split()) == set(method.error_codes) - set(common)


def test_names_are_unique_and_no_resource_is_called_as_a_method(contract: Contract) -> None:
    assert len(set(DOTTED_NAMES.values())) == len(DOTTED_NAMES)
    for resource in contract.root.walk():
        assert not {method.name for method in resource.methods} & set(resource.children)


def test_every_operation_says_with_which_codes_it_fails(contract: Contract) -> None:
    codes = {each.code for each in contract.error_codes}

    for method in contract.methods:
        assert set(method.error_codes) <= codes
        assert "internal_error" in method.error_codes, method.operation_id


def method_of(contract: Contract, dotted: str) -> Any:
    return next(each for each in contract.methods if ".".join(each.dotted) == dotted)


def test_a_post_is_read_with_body_answer_and_idempotency_key(contract: Contract) -> None:
    send = method_of(contract, "messages.send")

    assert (send.http_method, send.path, send.status) == ("POST", "/v1/send", 202)
    assert send.takes_idempotency_key
    assert send.body.field("buttons").type == Array(Array(Reference("ButtonBody")))
    assert send.body.field("format").default == "plain"
    assert contract.models[send.answer_model].field("message_id").type == Scalar("string")


def test_a_list_is_read_with_its_item_and_its_filters(contract: Contract) -> None:
    listed = method_of(contract, "subscribers.list")

    assert listed.item == Reference("Subscriber")
    assert "tag" in {each.name for each in listed.filters}
    assert "cursor" not in {each.name for each in listed.filters}
    assert not listed.takes_idempotency_key


def test_files_go_in_and_out(contract: Contract) -> None:
    upload, download = method_of(contract, "files.upload"), method_of(contract, "files.download")

    assert (upload.takes_file, upload.upload_field) == (True, "file")
    assert (download.answer, download.media_type) == (None, "application/octet-stream")
    assert method_of(contract, "subscribers.export").media_type == "text/csv"
    assert method_of(contract, "tags.delete").media_type == ""


def test_unions_keep_their_discriminator(contract: Contract) -> None:
    to = contract.models["FormRule"].field("to")

    assert to is not None
    assert isinstance(to.type, OneOf)
    assert to.type.discriminator == "kind"
    assert dict(to.type.mapping)["tag"] == "ToTag"


def document(schema: Any, **operation: Any) -> dict[str, Any]:
    """A document of one operation, whose answer has the field `value` of this schema."""
    answer = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Answer"}}}
    project = {
        "operationId": "get_project",
        "summary": "Returns the project.",
        "responses": {"200": {"description": "The project.", "content": content}},
        **operation,
    }
    return {
        "info": {"version": "1"},
        "paths": {"/v1/project": {"get": project}},
        "components": {"schemas": {"Answer": answer}},
    }


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["string", "null"]}, Scalar("string")),
        ({"enum": ["a", "b"], "type": "string"}, Literals(("a", "b"))),
        ({"const": True, "type": "boolean"}, Literals((True,))),
        ({"type": "object"}, Map(Scalar("any"))),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, Map(Scalar("integer"))),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, Scalar("number")),
        ({}, Scalar("any")),
    ],
)
def test_a_schema_becomes_a_type(schema: Any, expected: Any) -> None:
    field = Contract(document(schema)).models["Answer"].field("value")

    assert field is not None
    assert field.type == expected
    assert field.nullable is ("null" in str(schema))


def test_an_operation_without_a_name_is_refused() -> None:
    with pytest.raises(ContractError, match="no name for get_weather"):
        _ = Contract(document({}, operationId="get_weather")).methods


def test_a_schema_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ContractError, match="unknown kind"):
        _ = Contract(document({"type": "tuple"})).models


def test_two_arguments_of_one_name_are_refused() -> None:
    double = [{"name": "timeout_s", "in": "query", "schema": {"type": "integer"}}]

    with pytest.raises(ContractError, match="called timeout_s"):
        _ = Contract(document({}, parameters=double)).methods


def test_files_that_are_generated_no_longer_are_stale(tmp_path: Path) -> None:
    mark = "# Generated by `make clients` from contrib/openapi.json. Do not edit.\n"
    (tmp_path / "same.py").write_text(f"{mark}x = 1\n")
    (tmp_path / "other.py").write_text(f"{mark}x = 2\n")
    (tmp_path / "gone.py").write_text(mark)
    (tmp_path / "by_hand.py").write_text("x = 1\n")

    files = {"same.py": f"{mark}x = 1\n", "other.py": f"{mark}x = 1\n", "new.py": mark}
    assert stale(tmp_path, files) == ["gone.py", "new.py", "other.py"]


def test_the_sync_side_is_the_async_one_in_other_words() -> None:
    asynchronous = (
        "class AsyncFile(AsyncBase):\n"
        "    async def __aenter__(self) -> AsyncFile:\n"
        "        async with self._async_pool as pool:\n"
        "            return [each async for each in await pool.aclose()]\n"
    )

    assert synced(asynchronous) == (
        "class File(Base):\n"
        "    def __enter__(self) -> File:\n"
        "        with self._async_pool as pool:\n"
        "            return [each for each in pool.close()]\n"
    )
