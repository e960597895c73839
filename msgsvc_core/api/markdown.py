"""The API's reference as Markdown: an index, a page for each area, and one for webhook events.

Made of an OpenAPI document alone, so it needs no other module: the docs site reads it without the service.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

#: Objects within objects whose fields are listed; deeper ones are only named.
_DEPTH = 3

_METHODS = ("get", "post", "put", "patch", "delete")

Operation = Mapping[str, Any]

#: Calls of an operation, by method, path and what the document says of it: pairs of what a code block
#: begins with, such as `python`, and its code.
Samples = Callable[[str, str, Operation], Iterable[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """`name` is the file's name without `.md`; `title` and `about` are for a table of contents."""

    name: str
    title: str
    about: str
    text: str


class ApiPages:
    """Pages of `document`, an OpenAPI document as `json` reads it.

    `errors_page` is the link to the error codes, `titles` are names of areas other than their tag, and `more`
    is a further paragraph of a page, by the page's name.
    """

    def __init__(
        self,
        document: Mapping[str, Any],
        samples: Samples,
        *,
        errors_page: str,
        titles: Mapping[str, str] | None = None,
        more: Mapping[str, str] | None = None,
    ) -> None:
        self._document = document
        self._areas = {tag["name"]: tag.get("description", "") for tag in document["tags"]}
        self._samples = samples
        self._errors_page = errors_page
        self._titles = titles or {}
        self._more = more or {}

    def __iter__(self) -> Iterator[MarkdownPage]:
        operations = sorted(self._operations(), key=lambda one: one[2]["tags"][0])
        grouped = groupby(operations, key=lambda one: one[2]["tags"][0])
        by_area = {area: list(those) for area, those in grouped}
        yield MarkdownPage(
            "index",
            "Overview",
            "What all operations have in common.",
            "".join(self._index(by_area)),
        )
        for area, those in by_area.items():
            yield MarkdownPage(
                area, self._title(area), self._areas[area], "".join(self._area(area, those))
            )
        yield MarkdownPage(
            "webhook-events",
            "Webhook events",
            "What the service sends to your webhooks.",
            "".join(self._events()),
        )

    def _operations(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Method, path and operation."""
        for path, item in self._document["paths"].items():
            for method in _METHODS:
                if method in item:
                    yield method.upper(), path, item[method]

    def _index(
        self, by_area: Mapping[str, Sequence[tuple[str, str, Mapping[str, Any]]]]
    ) -> Iterator[str]:
        info = self._document["info"]
        yield f"# HTTP API\n\n{info['summary']} Version {info['version']}. "
        yield self._more.get("index", "")
        yield f"{info['description']}\n\n## Areas\n\n"
        for area, operations in by_area.items():
            yield f"### [{self._title(area)}]({area}.md)\n\n{self._areas[area]}\n\n"
            yield "| operation | what it does |\n| --- | --- |\n"
            for method, path, operation in operations:
                link = f"{area}.md#{_anchor(operation)}"
                yield f"| [`{method} {path}`]({link}) | {_cell(operation['summary'])} |\n"
            yield "\n"
        yield "### [Webhook events](webhook-events.md)\n\nWhat the service sends to your webhooks.\n"

    def _area(
        self, area: str, operations: Sequence[tuple[str, str, Mapping[str, Any]]]
    ) -> Iterator[str]:
        yield f"# {self._title(area)} API\n\n{self._areas[area]}\n\n"
        yield "What all operations have in common, such as authentication, lists and idempotency keys, is in "
        yield "the [overview](index.md).\n\n"
        for method, path, operation in operations:
            # The anchor is the operation's id, which stays when a path's parameter is renamed.
            yield f"## `{method} {path}` {{#{_anchor(operation)}}}\n\n{operation['summary']}\n\n"
            if "description" in operation:
                yield f"{operation['description']}\n\n"
            if operation.get("deprecated"):
                yield "**Deprecated.**\n\n"
            yield from self._request(method, path, operation)
            yield from self._responses(operation)

    def _request(self, method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
        parameters = [self._resolved(one) for one in operation.get("parameters", [])]
        body = self._resolved(operation.get("requestBody", {}))
        content = body.get("content", {})
        for begin, code in self._samples(method, path, operation):
            yield f"```{begin}\n{code}```\n\n"
        if parameters:
            yield "| parameter | meaning |\n| --- | --- |\n"
            for one in parameters:
                schema = self._resolved(one["schema"])
                meaning = self._meaning(schema, one.get("description", ""))
                kind = f"{self._type(one['schema'])}, in the {one['in']}"
                yield f"| {_named(one['name'], kind, one.get('required'))} | {meaning} |\n"
            yield "\n"
        for media_type, described in content.items():
            needed = "" if body.get("required") else ", optional"
            yield f"**Body**: `{media_type}`{needed}\n\n"
            yield from self._fields(described["schema"])

    def _responses(self, operation: Mapping[str, Any]) -> Iterator[str]:
        errors: list[tuple[str, list[str]]] = []
        for status, reference in operation["responses"].items():
            response = self._resolved(reference)
            codes = response.get("x-error-codes")
            if codes:
                errors.append((status, codes))
                continue
            yield f"**Response {status}**: {response['description']}\n\n"
            for media_type, content in response.get("content", {}).items():
                if media_type != "application/json":
                    yield f"Its body is `{media_type}`.\n\n"
                    continue
                yield from self._fields(content["schema"], is_answer=True)
                example = content.get("example")
                if example is not None:
                    yield _json_block(example, "Response")
        if errors:
            yield "| error | codes |\n| --- | --- |\n"
            for status, codes in errors:
                links = ", ".join(f"[`{code}`]({self._errors_page}#{code})" for code in codes)
                yield f"| {status} | {links} |\n"
            yield "\n"

    def _events(self) -> Iterator[str]:
        yield "# Webhook events API\n\n"
        yield "What the service sends to your webhooks: a `POST` with a signed JSON body, "
        yield "to be answered with a status of 2xx.\n\n"
        yield self._more.get("webhook-events", "")
        first = next(iter(self._document["webhooks"].values()))["post"]
        yield "Each request has these headers:\n\n| header | meaning |\n| --- | --- |\n"
        for one in first["parameters"]:
            parameter = self._resolved(one)
            yield f"| `{parameter['name']}` | {_cell(parameter['description'])} |\n"
        yield "\n"
        for event, item in self._document["webhooks"].items():
            operation = item["post"]
            content = operation["requestBody"]["content"]["application/json"]
            yield f"## `{event}`\n\n{operation['summary']}\n\n"
            if "description" in operation:
                yield f"{operation['description']}\n\n"
            yield from self._fields(content["schema"], is_answer=True)
            example = content.get("example")
            if example is not None:
                yield _json_block(example, "Body")

    def _title(self, area: str) -> str:
        return self._titles.get(area, area.capitalize())

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            _, _, kind, name = str(schema["$ref"]).split("/")
            schema = self._document["components"][kind][name]
        return schema

    def _fields(self, schema: Mapping[str, Any], *, is_answer: bool = False) -> Iterator[str]:
        """A table of an object's fields, with those of the objects in it; nothing if it has none.

        Of an answer it doesn't say which are required: those that may be missing may be null.
        """
        rows = list(self._rows(self._resolved(schema), "", (), is_answer))
        if rows:
            yield "| field | meaning |\n| --- | --- |\n"
            yield from rows
            yield "\n"

    def _rows(
        self, schema: Mapping[str, Any], prefix: str, inside: tuple[str, ...], is_answer: bool
    ) -> Iterator[str]:
        required = set() if is_answer else set(schema.get("required", ()))
        for name, reference in schema.get("properties", {}).items():
            field = self._resolved(reference)
            meaning = self._meaning(
                field, reference.get("description", field.get("description", ""))
            )
            shown = _named(f"{prefix}{name}", self._type(reference), name in required)
            yield f"| {shown} | {meaning} |\n"
            for suffix, inner in self._objects(reference):
                known = str(inner.get("title", ""))
                if len(inside) < _DEPTH and known not in inside:
                    below = f"{prefix}{name}{suffix}."
                    yield from self._rows(inner, below, (*inside, known), is_answer)

    def _objects(
        self, schema: Mapping[str, Any], suffix: str = ""
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The objects that a field holds, and what stands between its name and theirs: `[]` for a list's."""
        found = self._resolved(schema)
        for choice in [*found.get("anyOf", ()), *found.get("oneOf", ())]:
            yield from self._objects(choice, suffix)
        if "items" in found:
            yield from self._objects(found["items"], f"{suffix}[]")
        if "properties" in found:
            yield suffix, found

    def _type(self, schema: Mapping[str, Any]) -> str:
        found = self._resolved(schema)
        choices = [*found.get("anyOf", ()), *found.get("oneOf", ())]
        if choices:
            return " or ".join(dict.fromkeys(self._type(choice) for choice in choices))
        if "const" in found:
            return f"`{json.dumps(found['const'], ensure_ascii=False)}`"
        if "enum" in found:
            return ", ".join(f"`{value}`" for value in found["enum"])
        kind = found.get("type", "any value")
        if kind == "array":
            inner = self._type(found.get("items", {}))
            return f"list of {inner}"
        if kind == "string" and found.get("format"):
            return str(found["format"])
        return " or ".join(kind) if isinstance(kind, list) else str(kind)

    def _meaning(self, schema: Mapping[str, Any], description: str) -> str:
        parts = [description, *self._limits(schema)]
        if schema.get("default") is not None:
            parts.append(f"Default `{json.dumps(schema['default'], ensure_ascii=False)}`.")
        return _cell(" ".join(filter(None, parts)))

    def _limits(self, schema: Mapping[str, Any]) -> Iterator[str]:
        for one in (schema, *map(self._resolved, schema.get("anyOf", ()))):
            if "minimum" in one and "maximum" in one:
                yield f"{one['minimum']} to {one['maximum']}."
            elif "minimum" in one:
                yield f"At least {one['minimum']}."
            elif "maximum" in one:
                yield f"At most {one['maximum']}."
            if "maxLength" in one:
                yield f"At most {one['maxLength']} characters."
            if "maxItems" in one:
                yield f"At most {one['maxItems']} entries."
            if "pattern" in one:
                yield f"Pattern `{one['pattern']}`."


def _anchor(operation: Mapping[str, Any]) -> str:
    return str(operation["operationId"]).replace("_", "-")


def _named(name: str, kind: str, required: object) -> str:
    """The first cell of a field's row: its name, and below it what it takes."""
    return f"`{name}`<br>{_cell(kind)}" + (", **required**" if required else "")


def _json_block(value: Any, title: str) -> str:
    shown = json.dumps(value, ensure_ascii=False, indent=2)
    return f"{title}, for example:\n\n```json\n{shown}\n```\n\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
