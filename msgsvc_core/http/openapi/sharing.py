"""Moves what operations have in common into the document's components.

    document = shared(openapi(...))      # responses and parameters are references to components

Most of a document is error responses: without references it is twice as large.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from msgsvc_core.kernel.json import from_json, to_json

Part = dict[str, Any]


def shared(document: Mapping[str, Any]) -> Part:
    """The document with error responses, and parameters that several operations have, in its components.

    Examples of fields are left out: those of bodies and responses show the same values.
    """
    names, responses = _error_responses(document)
    parameters = _common_parameters(document)

    def of_operation(operation: Mapping[str, Any]) -> Part:
        own = [
            _reference("parameters", each["name"]) if parameters.get(each["name"]) == each else each
            for each in operation.get("parameters", ())
        ]
        found = {
            status: (
                _reference("responses", names[to_json(response)])
                if _is_error(response)
                else response
            )
            for status, response in operation["responses"].items()
        }
        return {**operation, **({"parameters": own} if own else {}), "responses": found}

    paths = _changed(document["paths"], of_operation)
    webhooks = _changed(document["webhooks"], of_operation)
    components = document["components"]
    return {
        **document,
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            **components,
            "schemas": {
                name: _without_examples(schema) for name, schema in components["schemas"].items()
            },
            "responses": responses,
            "parameters": parameters,
        },
    }


def _error_responses(document: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Part]]:
    """The names of error responses by their JSON, and the responses by name: the usual one of each status is
    `Error404`, others have their codes in their name."""
    counts: Counter[tuple[str, str]] = Counter()
    for operation in _operations(document):
        for status, response in operation["responses"].items():
            if _is_error(response):
                counts[status, to_json(response)] += 1
    names: dict[str, str] = {}
    responses: dict[str, Part] = {}
    for status, text in _most_first(counts):
        response = from_json(text)
        name = f"Error{status}"
        if name in responses:
            name = "_".join([name, *response["x-error-codes"]])
        assert name not in responses, f"two responses are called {name}"
        names[text] = name
        responses[name] = response
    return names, dict(sorted(responses.items()))


def _common_parameters(document: Mapping[str, Any]) -> dict[str, Part]:
    """By name, the description of it that most operations share; none that only one has."""
    counts = Counter(
        (each["name"], to_json(each))
        for operation in _operations(document)
        for each in operation.get("parameters", ())
    )
    found: dict[str, Part] = {}
    for name, text in _most_first(counts):
        if counts[name, text] > 1:
            found.setdefault(name, from_json(text))
    return dict(sorted(found.items()))


def _most_first(counts: Mapping[tuple[str, str], int]) -> list[tuple[str, str]]:
    return sorted(counts, key=lambda key: (-counts[key], key))


def _is_error(response: Mapping[str, Any]) -> bool:
    return "x-error-codes" in response


def _operations(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for paths in (document["paths"], document["webhooks"]):
        for item in paths.values():
            yield from item.values()


def _changed(paths: Mapping[str, Any], change: Any) -> Part:
    return {
        path: {method: change(operation) for method, operation in item.items()}
        for path, item in paths.items()
    }


def _without_examples(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_examples(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: (
            {field: _without_examples(of) for field, of in value.items()}
            if name == "properties"
            else _without_examples(value)
        )
        for name, value in schema.items()
        if name != "examples"
    }


def _reference(kind: str, name: str) -> Part:
    return {"$ref": f"#/components/{kind}/{name}"}
