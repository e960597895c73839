"""Calls of each operation in curl, Python and TypeScript, which the service's own API page shows."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contrib.clients.codegen.contract import Contract
from contrib.clients.codegen.examples import Example, Examples, curl
from contrib.clients.codegen.rendering import ROOT

FOLDER = ROOT / "msgsvc_core/api"

_METHODS = ("get", "post", "put", "patch", "delete")


class Samples:
    """`document` is what an OpenAPI document holds, as `json` reads it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._methods = {each.operation_id: each for each in Contract(document).methods}

    def of(self, method: str, path: str, operation: Mapping[str, Any]) -> list[Example]:
        """With the examples of its parameters and body. An operation for browsers, which no client has, in
        curl alone."""
        parameters = [self.resolved(one) for one in operation.get("parameters", [])]
        values = {one["name"]: one["example"] for one in parameters if "example" in one}
        content = self.resolved(operation.get("requestBody", {})).get("content", {})
        body = self.example(content["application/json"]) if "application/json" in content else None
        if known := self._methods.get(operation["operationId"]):
            return list(Examples(known, values, body))
        is_public = operation.get("security") == []
        return [Example("sh", "curl", curl(method, path, values, body, is_public=is_public))]

    def of_all(self) -> dict[str, list[Example]]:
        """By operation id."""
        return {
            item[method]["operationId"]: self.of(method.upper(), path, item[method])
            for path, item in self._document["paths"].items()
            for method in _METHODS
            if method in item
        }

    def example(self, content: Mapping[str, Any]) -> Any:
        """The first example of a body; None if there is none."""
        if "example" in content:
            return content["example"]
        for example in content.get("examples", {}).values():
            return self.resolved(example)["value"]
        return next(iter(self.resolved(content["schema"]).get("examples", ())), None)

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a reference refers to; anything else unchanged."""
        while "$ref" in schema:
            found: Any = self._document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part.replace("~1", "/").replace("~0", "~")]
            schema = found
        return schema


def generate(contract: Contract) -> Mapping[Path, Mapping[str, str]]:
    """One file for the areas of this repository; what plugins of others add is shown in curl alone."""
    samples = {
        operation_id: {each.title: each.code for each in those}
        for operation_id, those in sorted(Samples(contract.document).of_all().items())
    }
    return {FOLDER: {"samples.json": json.dumps(samples, ensure_ascii=False, indent=1) + "\n"}}
