"""Tells which changes of the API would break clients that are installed already.

    python -m contrib.clients.codegen.compatibility             # exit code 1 if anything breaks
    python -m contrib.clients.codegen.compatibility --release   # records what released clients rely on

`contrib/clients/released.json` is the document that the released clients were generated from, without its
texts. `breaks(released, current)` compares it with the present one in both directions: whatever clients may
send has to be taken still, and whatever the service answers has to be what they can read. Additions pass:
optional fields and parameters, fields of answers, operations, events, error codes (an unknown code raises
the base class of its status), and codes that an operation didn't have before.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from contrib.clients.codegen.names import DOTTED_NAMES

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "contrib/openapi.json"
RELEASED = ROOT / "contrib/clients/released.json"

Schema = Mapping[str, Any]

#: Texts of the document. They break nobody, so the released one goes without.
_TEXTS = {"description", "summary", "title", "examples", "example", "externalDocs"}
#: Below these, names are data of the document, whatever they spell.
_NAMED = {"properties", "patternProperties", "paths", "schemas", "webhooks", "headers", "mapping"}

#: Keywords that bound what a request may hold, and whether a higher value takes less.
_BOUNDS = {
    "minimum": True,
    "exclusiveMinimum": True,
    "minLength": True,
    "minItems": True,
    "minProperties": True,
    "maximum": False,
    "exclusiveMaximum": False,
    "maxLength": False,
    "maxItems": False,
    "maxProperties": False,
}


_WHAT_TO_DO = """\
Keep what they use, and add beside it: an optional field, another operation, another event.
If it has to break, CONTRIBUTING.md says how: "A change that breaks clients"."""


class Kind(StrEnum):
    """What is wrong with a change."""

    REMOVED_OPERATION = "removed operation"
    RENAMED_OPERATION = "renamed operation"
    MOVED_OPERATION = "moved operation"
    REMOVED_EVENT = "removed event"
    REMOVED_FIELD = "removed field"
    NEW_REQUIRED = "newly required"
    OPTIONAL = "newly optional"
    NULLABLE = "null"
    RETYPED = "other type"
    ENUM = "other values"
    NARROWED = "narrowed"
    DEFAULT = "other default"
    STATUS = "other status"
    ERROR_STATUS = "other status of an error"
    HEADER = "removed header"
    MEDIA_TYPE = "other media type"
    AUTHENTICATION = "other authentication"
    PAGINATION = "other pagination"


@dataclass(frozen=True)
class Break:
    """One reason why installed clients break, with all operations and events that it concerns."""

    kind: Kind
    #: What has changed: "body field `SendBody.text`", "query parameter `limit`".
    place: str
    #: With `{clients}` for "clients of 0.1.0".
    why: str
    #: operationIds and names of events.
    concerns: tuple[str, ...]


@dataclass(frozen=True)
class _Escape:
    """Something that one side may send and the other doesn't take."""

    kind: Kind
    place: str
    why: str


def breaks(released: Schema, current: Schema) -> list[Break]:
    """What would break for clients that were generated from `released`; empty if they all go on working."""
    found: dict[_Escape, list[str]] = {}
    for concerned, escape in _escapes(released, current):
        concerns = found.setdefault(escape, [])
        if concerned not in concerns:
            concerns.append(concerned)
    return [
        Break(escape.kind, escape.place, escape.why, tuple(concerns))
        for escape, concerns in found.items()
    ]


def report(found: Iterable[Break], version: str) -> str:
    """The breaks for people: which clients, what, why, and what to do about it."""
    parts = []
    for one in found:
        why = one.why.replace("{clients}", f"clients of {version}")
        concerned = "\n".join(f"    {_in_clients(each)}" for each in one.concerns)
        parts.append(f"{one.place}: {why}\n{concerned}")
    if not parts:
        return ""
    return "\n\n".join(
        [
            f"This would break clients of {version}, which people have installed:",
            *parts,
            _WHAT_TO_DO,
        ]
    )


def without_texts(document: Schema) -> dict[str, Any]:
    """What clients rely on: the document without its texts, and of errors only the codes."""

    def cleaned(node: Any, *, named: bool = False) -> Any:
        if isinstance(node, list):
            return [cleaned(each) for each in node]
        if not isinstance(node, dict):
            return node
        return {
            name: cleaned(value, named=name in _NAMED and not named)
            for name, value in node.items()
            if named or name not in _TEXTS
        }

    result: dict[str, Any] = cleaned(dict(document))
    for methods in result["paths"].values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if status[0] in "45":
                    codes = _resolve(response, document)[0]["x-error-codes"]
                    operation["responses"][status] = {"x-error-codes": codes}
    result["components"].pop("responses", None)
    result["info"] = {"title": document["info"]["title"], "version": document["info"]["version"]}
    return result


def may_break(released: str, current: str) -> bool:
    """Whether a version may break clients of another: the first number that isn't 0 has risen."""
    old = [int(part) for part in released.split(".")]
    new = [int(part) for part in current.split(".")]
    leading = next((place for place, number in enumerate(old) if number), len(old) - 1)
    return new[: leading + 1] > old[: leading + 1]


# Operations and events -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Operation:
    """An operation with what belongs to it in its document."""

    operation_id: str
    method: str
    path: str
    described: Schema
    document: Schema

    @property
    def address(self) -> str:
        return f"{self.method} {self.path}"

    def parameters(self) -> dict[tuple[str, str], Schema]:
        listed = self.described.get("parameters", ())
        resolved = (_resolve(each, self.document)[0] for each in listed)
        return {(each["in"], each["name"]): each for each in resolved}

    def responses(self) -> dict[str, Schema]:
        return {
            status: _resolve(response, self.document)[0]
            for status, response in self.described["responses"].items()
        }

    def success(self) -> dict[str, Schema]:
        return {status: each for status, each in self.responses().items() if status[0] in "23"}

    def error_codes(self) -> dict[str, str]:
        """Its error codes, with the status of each."""
        return {
            code: status
            for status, response in self.responses().items()
            for code in response.get("x-error-codes", ())
        }

    def authentication(self) -> set[str]:
        """The schemes, each of which is enough."""
        security = self.described.get("security", self.document.get("security", ()))
        return {name for each in security for name in each}

    def is_paged(self) -> bool:
        return ("query", "cursor") in self.parameters() and "next_cursor" in self.answer_fields()

    def answer_fields(self) -> set[str]:
        for response in self.success().values():
            content = response.get("content", {}).get("application/json", {})
            schema = _resolve(content.get("schema", {}), self.document)[0]
            return set(schema.get("properties", {}))
        return set()


def _operations(document: Schema) -> dict[str, _Operation]:
    return {
        described["operationId"]: _Operation(
            described["operationId"], method.upper(), path, described, document
        )
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    }


def _escapes(released: Schema, current: Schema) -> Iterator[tuple[str, _Escape]]:
    old, new = _operations(released), _operations(current)
    by_address = {each.address: each for each in new.values()}
    requests = _Comparison(released, current, is_request=True)
    answers = _Comparison(current, released, is_request=False)
    for operation_id, before in old.items():
        after = new.get(operation_id)
        if after is None:
            yield operation_id, _gone(before, by_address.get(before.address))
            continue
        for escape in (
            *_of_address(before, after),
            *_of_parameters(before, after, requests),
            *_of_body(before, after, requests),
            *_of_answers(before, after, answers),
        ):
            yield operation_id, escape
    for name, operations in released.get("webhooks", {}).items():
        for escape in _of_event(name, operations, released, current, answers):
            yield name, escape


def _gone(before: _Operation, at_its_address: _Operation | None) -> _Escape:
    if at_its_address is None:
        return _Escape(Kind.REMOVED_OPERATION, before.address, "it is gone, and {clients} call it")
    return _Escape(
        Kind.RENAMED_OPERATION,
        before.address,
        f"its operationId is `{at_its_address.operation_id}` instead of `{before.operation_id}`: whoever "
        "updates their client finds its method gone",
    )


def _of_address(before: _Operation, after: _Operation) -> Iterator[_Escape]:
    if before.address != after.address:
        yield _Escape(
            Kind.MOVED_OPERATION,
            before.address,
            f"it is `{after.address}` now, and {{clients}} call the former address",
        )
    for scheme in sorted(before.authentication() - after.authentication()):
        yield _Escape(
            Kind.AUTHENTICATION,
            before.address,
            f"the scheme `{scheme}` is no longer taken, and {{clients}} may authenticate by it",
        )
    if not before.authentication() and after.authentication():
        yield _Escape(
            Kind.AUTHENTICATION,
            before.address,
            "it needs authentication now, and was open to {clients}",
        )
    was_whole = "data" in before.answer_fields() and not before.is_paged()
    if before.is_paged() and not after.is_paged():
        yield _Escape(
            Kind.PAGINATION,
            before.address,
            "it has no pages by `cursor` and `next_cursor` any more, and {clients} read page after page",
        )
    elif was_whole and after.is_paged():
        yield _Escape(
            Kind.PAGINATION,
            before.address,
            "it answers page by page now: {clients} would take the first page for the whole list",
        )


def _of_parameters(
    before: _Operation, after: _Operation, requests: "_Comparison"
) -> Iterator[_Escape]:
    old, new = before.parameters(), after.parameters()
    for (where, name), parameter in old.items():
        place = f"{where} parameter `{name}`"
        now = new.get((where, name))
        if now is None:
            why = "it is gone, and {clients} may send it"
            if where == "path":
                why = "it is called something else, and programs pass it to {clients} by its name"
            yield _Escape(Kind.REMOVED_FIELD, place, why)
            continue
        if now.get("required") and not parameter.get("required"):
            yield _Escape(
                Kind.NEW_REQUIRED, place, "it is required now, and {clients} may leave it out"
            )
        yield from requests.compare(parameter["schema"], now["schema"], place)
        yield from requests.default(parameter["schema"], now["schema"], place)
    for (where, name), parameter in new.items():
        if (where, name) not in old and parameter.get("required") and where != "path":
            place = f"{where} parameter `{name}`"
            yield _Escape(Kind.NEW_REQUIRED, place, "it is required, and {clients} don't know it")


def _of_body(before: _Operation, after: _Operation, requests: "_Comparison") -> Iterator[_Escape]:
    old, new = before.described.get("requestBody"), after.described.get("requestBody")
    if old is None:
        if new and new.get("required"):
            yield _Escape(
                Kind.NEW_REQUIRED, before.address, "it needs a body now, and {clients} send none"
            )
        return
    if new is None:
        yield _Escape(
            Kind.REMOVED_FIELD, before.address, "it takes no body, and {clients} send one"
        )
        return
    if new.get("required") and not old.get("required"):
        yield _Escape(
            Kind.NEW_REQUIRED, before.address, "it needs a body now, and {clients} may send none"
        )
    for media_type, described in old["content"].items():
        now = new["content"].get(media_type)
        if now is None:
            yield _Escape(
                Kind.MEDIA_TYPE,
                before.address,
                f"it takes no `{media_type}`, and {{clients}} send that",
            )
        else:
            yield from requests.compare(described["schema"], now["schema"], "body")


def _of_answers(before: _Operation, after: _Operation, answers: "_Comparison") -> Iterator[_Escape]:
    old, new = before.success(), after.success()
    if set(old) != set(new):
        yield _Escape(
            Kind.STATUS,
            before.address,
            f"it answers {', '.join(sorted(new))}, and {{clients}} expect {', '.join(sorted(old))}",
        )
    for (status, was), now in zip(old.items(), new.values(), strict=False):
        for media_type, described in was.get("content", {}).items():
            current = now.get("content", {}).get(media_type)
            if current is None:
                yield _Escape(
                    Kind.MEDIA_TYPE,
                    before.address,
                    f"its answer is no `{media_type}`, and {{clients}} read that",
                )
            else:
                yield from answers.compare(
                    current.get("schema", {}), described.get("schema", {}), "answer"
                )
        for header in sorted(set(was.get("headers", {})) - set(now.get("headers", {}))):
            yield _Escape(
                Kind.HEADER,
                f"answer header `{header}`",
                f"it is gone from {status}, and {{clients}} read it",
            )
    statuses = after.error_codes()
    for code, status in before.error_codes().items():
        if statuses.get(code, status) != status:
            yield _Escape(
                Kind.ERROR_STATUS,
                f"error `{code}`",
                f"it comes with {statuses[code]} instead of {status}, by which {{clients}} decide whether "
                "to try again, and programs what to catch",
            )


def _of_event(
    name: str, operations: Schema, released: Schema, current: Schema, answers: "_Comparison"
) -> Iterator[_Escape]:
    now = current.get("webhooks", {}).get(name)
    if now is None:
        yield _Escape(
            Kind.REMOVED_EVENT,
            f"event `{name}`",
            "it is gone, and programs wait for it by {clients}",
        )
        return
    headers = _headers(now["post"], current)
    for header in _headers(operations["post"], released):
        if header not in headers:
            yield _Escape(
                Kind.HEADER,
                f"webhook header `{header}`",
                "it is gone, and {clients} verify webhooks by it",
            )
    (old,) = operations["post"]["requestBody"]["content"].values()
    (new,) = now["post"]["requestBody"]["content"].values()
    yield from answers.compare(new["schema"], old["schema"], "event")


# Schemas -------------------------------------------------------------------------------------------------


class _Comparison:
    """Tells what values of a schema of `source` aren't values of the one in `target`.

    A request: the source is the released document, by which clients send, and the target the present one.
    An answer the other way round; there, clients read what they know and leave the rest, and check no bounds.
    """

    def __init__(self, source: Schema, target: Schema, *, is_request: bool) -> None:
        self._source = source
        self._target = target
        self._is_request = is_request
        #: By the names of two models, as many operations share them. One that is being compared is empty
        #: until then, so that models which contain themselves come to an end.
        self._known: dict[tuple[str, str], tuple[_Escape, ...]] = {}

    def compare(self, source: Schema, target: Schema, place: str) -> Iterator[_Escape]:
        """`place` is what people call it: "body", "query parameter `limit`"."""
        to = _options(target, self._target)
        if any(not option.schema for option in to):
            return
        options = _options(source, self._source)
        several = max(len([each for each in side if each.model]) for side in (options, to)) > 1
        for option in options:
            if option.type == "null":
                if not any(each.type == "null" for each in to):
                    yield self._null(place)
                continue
            candidates = [each for each in to if _is_kind_of(option, each)]
            namesakes = [each for each in candidates if option.model and each.model == option.model]
            if not candidates:
                others = [each.schema for each in to if each.type != "null"]
                yield self._retyped(option.schema, others, place)
            elif differences := self._of_best(option, namesakes or candidates, place):
                is_unknown = several and option.model and not namesakes
                yield from [self._beyond(option.model, place)] if is_unknown else differences

    def default(self, source: Schema, target: Schema, place: str) -> Iterator[_Escape]:
        """A released default that has changed: who leaves the value out gets something else."""
        if not self._is_request or "default" not in source:
            return
        if target.get("default", _ABSENT) != source["default"]:
            now = json.dumps(target["default"]) if "default" in target else "nothing"
            yield _Escape(
                Kind.DEFAULT,
                place,
                f"left out, it means {now} instead of {json.dumps(source['default'])}, and {{clients}} "
                "may rely on that",
            )

    def _of_best(
        self, source: "_Option", to: Sequence["_Option"], place: str
    ) -> tuple[_Escape, ...]:
        """Against the alternative that fits best."""
        values = source.schema.get("enum", ())
        if len(to) > 1 and len(values) > 1:
            # Each value may be taken by another alternative.
            single = [_Option({**source.schema, "enum": [value]}) for value in values]
            return tuple(escape for one in single for escape in self._of_best(one, to, place))
        return min((self._of_option(source, each, place) for each in to), key=len)

    def _of_option(self, source: "_Option", target: "_Option", place: str) -> tuple[_Escape, ...]:
        if not (source.model and target.model):
            return tuple(self._of_schema(source.schema, target.schema, place))
        models = (source.model, target.model)
        if models not in self._known:
            self._known[models] = ()
            released = source.model if self._is_request else target.model
            differences = self._of_schema(source.schema, target.schema, f"field `{released}`")
            self._known[models] = tuple(differences)
        return self._known[models]

    def _of_schema(self, source: Schema, target: Schema, place: str) -> Iterator[_Escape]:
        yield from self._of_values(source, target, place)
        match source.get("type"):
            case "object":
                yield from self._of_object(source, target, place)
            case "array":
                items = _inside(place, "[]")
                yield from self.compare(source.get("items", {}), target.get("items", {}), items)

    def _of_values(self, source: Schema, target: Schema, place: str) -> Iterator[_Escape]:
        values, taken = source.get("enum"), target.get("enum")
        if taken is not None:
            if values is None:
                yield self._retyped(source, [target], place)
            elif beyond := [str(value) for value in values if value not in taken]:
                yield self._beyond("`, `".join(beyond), place)
            return
        if values is None:
            yield from self._of_texts(source, target, place)
        if self._is_request:
            yield from self._of_bounds(source, target, place)

    def _of_texts(self, source: Schema, target: Schema, place: str) -> Iterator[_Escape]:
        for keyword in ("format", "pattern") if self._is_request else ("format",):
            if keyword not in target or source.get(keyword) == target[keyword]:
                continue
            here, there = f"`{source.get(keyword, 'any')}`", f"`{target[keyword]}`"
            why = f"its {keyword} is {here}, and {{clients}} read {there}"
            if self._is_request:
                why = f"its {keyword} is {there}, and {{clients}} may send {here}"
            yield _Escape(Kind.NARROWED if self._is_request else Kind.RETYPED, place, why)

    def _of_bounds(self, source: Schema, target: Schema, place: str) -> Iterator[_Escape]:
        for keyword, higher_takes_less in _BOUNDS.items():
            bound, former = target.get(keyword), source.get(keyword)
            if bound is None or (keyword[:3] == "min" and bound == 0 and former is None):
                continue
            if former is None or (bound > former if higher_takes_less else bound < former):
                was = "without one" if former is None else str(former)
                yield _Escape(
                    Kind.NARROWED,
                    place,
                    f"its `{keyword}` is {bound} and was {was}: {{clients}} may send what would be refused",
                )
        for keyword in ("multipleOf", "uniqueItems"):
            if target.get(keyword) and target[keyword] != source.get(keyword):
                yield _Escape(
                    Kind.NARROWED,
                    place,
                    f"`{keyword}` is {json.dumps(target[keyword])} now: {{clients}} may send what would be "
                    "refused",
                )

    def _of_object(self, source: Schema, target: Schema, place: str) -> Iterator[_Escape]:
        old, new = (source, target) if self._is_request else (target, source)
        fields, taken = source.get("properties", {}), target.get("properties", {})
        needed = set(target.get("required", ())) - set(source.get("required", ()))
        for name in old.get("properties", {}):
            inside = _inside(place, name)
            if name not in new.get("properties", {}):
                why = "it is gone, and {clients} read it"
                if self._is_request:
                    why = "it is no longer taken, and {clients} may send it"
                yield _Escape(Kind.REMOVED_FIELD, inside, why)
                continue
            if name in needed:
                yield self._not_always(inside)
            yield from self.compare(fields[name], taken[name], inside)
            yield from self.default(fields[name], taken[name], inside)
        if self._is_request:
            for name in sorted(needed - set(fields)):
                yield _Escape(
                    Kind.NEW_REQUIRED,
                    _inside(place, name),
                    "it is required, and {clients} don't know it",
                )
        if not fields and not taken:
            yield from self._of_map(source, target, place)

    def _of_map(self, source: Schema, target: Schema, place: str) -> Iterator[_Escape]:
        """Objects whose names are data."""
        if self._is_request:
            yield from self.compare(_names(source), _names(target), _inside(place, "(names)"))
            yield from self._of_bounds(source, target, place)
        yield from self.compare(_values(source), _values(target), _inside(place, "*"))

    def _not_always(self, place: str) -> _Escape:
        if self._is_request:
            return _Escape(
                Kind.NEW_REQUIRED, place, "it is required now, and {clients} may leave it out"
            )
        return _Escape(Kind.OPTIONAL, place, "it may be absent now, and {clients} read it always")

    def _beyond(self, named: str, place: str) -> _Escape:
        """Values or alternatives that the other side doesn't have."""
        why = f"it may be `{named}`, which {{clients}} don't know"
        if self._is_request:
            why = f"`{named}` is no longer taken, and {{clients}} may send it"
        return _Escape(Kind.ENUM, place, why)

    def _null(self, place: str) -> _Escape:
        if self._is_request:
            return _Escape(
                Kind.NULLABLE, place, "`null` is no longer taken, and {clients} may send it"
            )
        return _Escape(
            Kind.NULLABLE, place, "it may be `null` now, and {clients} don't expect that"
        )

    def _retyped(self, source: Schema, target: Sequence[Schema], place: str) -> _Escape:
        here, there = _called(source), " or ".join(map(_called, target)) or "`null`"
        if self._is_request:
            return _Escape(Kind.RETYPED, place, f"it takes {there}, and {{clients}} send {here}")
        return _Escape(Kind.RETYPED, place, f"it is {here}, and {{clients}} read {there}")


_ABSENT = object()


def _inside(place: str, name: str) -> str:
    """`body field `A`` and `b`: `body field `A.b``."""
    separator = "" if name == "[]" else "."
    if place.endswith("`"):
        return f"{place[:-1]}{separator}{name}`"
    return f"{place} field `{name}`"


def _headers(operation: Schema, document: Schema) -> list[str]:
    """The names of the headers of an event's request."""
    return [_resolve(each, document)[0]["name"] for each in operation.get("parameters", ())]


def _resolve(schema: Schema, document: Schema) -> tuple[Schema, str]:
    """What a reference leads to, and the name it has there; an unnamed schema is its own."""
    name = ""
    while "$ref" in schema:
        keys = schema["$ref"].removeprefix("#/").split("/")
        found: Any = document
        for key in keys:
            found = found[key]
        schema, name = found, keys[-1]
    return schema, name


@dataclass(frozen=True)
class _Option:
    """One alternative of a schema. An empty schema is any value."""

    schema: Schema
    #: The name of the model that it is, if it has one.
    model: str = ""

    @property
    def type(self) -> str:
        kind: str = self.schema.get("type", "")
        return kind


def _options(schema: Any, document: Schema) -> list[_Option]:
    """The alternatives of a schema, each of one type."""
    schema, model = _resolve(schema if isinstance(schema, Mapping) else {}, document)
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            # An `allOf` of ours holds one reference, with a description beside it.
            return [each for option in schema[keyword] for each in _options(option, document)]
    if "const" in schema:
        value = schema["const"]
        return [_Option({**schema, "enum": [value], "type": _type_of(value)}, model)]
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return [_Option({**schema, "type": kind}, model) for kind in kinds]
    if kinds is None and "enum" in schema:
        return [
            _Option({**schema, "enum": [value], "type": _type_of(value)}, model)
            for value in schema["enum"]
        ]
    if kinds is None and "properties" in schema:
        return [_Option({**schema, "type": "object"}, model)]
    return [_Option(schema if kinds else {}, model)]


def _type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
    return "object"


def _is_kind_of(source: _Option, target: _Option) -> bool:
    return source.type == target.type or (source.type, target.type) == ("integer", "number")


def _called(schema: Schema) -> str:
    if not schema:
        return "any value"
    if values := schema.get("enum"):
        return f"one of {', '.join(f'`{value}`' for value in values)}"
    return f"`{schema['type']}`"


def _values(schema: Schema) -> Schema:
    """The schema of the values in a map."""
    patterns = schema.get("patternProperties")
    if patterns:
        return {"anyOf": list(patterns.values())}
    values = schema.get("additionalProperties", True)
    return values if isinstance(values, Mapping) else {}


def _names(schema: Schema) -> Schema:
    """The schema of the names in a map."""
    patterns = schema.get("patternProperties")
    if patterns:
        return {"type": "string", "pattern": "|".join(sorted(patterns))}
    return {"type": "string", **schema.get("propertyNames", {})}


# What people see -----------------------------------------------------------------------------------------


def _in_clients(concerned: str) -> str:
    """An operation or event as users of both clients know it."""
    dotted = DOTTED_NAMES.get(concerned)
    if dotted is None:
        kind = "event" if "." in concerned else "operation"
        return f"{kind} {concerned} (Python, TypeScript)"
    camel = re.sub(r"_(\w)", lambda match: match[1].upper(), dotted)
    return f"client.{dotted} (Python), client.{camel} (TypeScript)"


def main(arguments: Sequence[str], out: Callable[[str], object] = print) -> int:
    current = json.loads(DOCUMENT.read_text("utf-8"))
    released = json.loads(RELEASED.read_text("utf-8")) if RELEASED.exists() else None
    found = breaks(released, current) if released else []
    version = released["info"]["version"] if released else ""
    if found:
        out(report(found, version))
    if "--release" not in arguments:
        return 1 if found else 0
    now = current["info"]["version"]
    if found and not may_break(version, now):
        out(f"\nNot released: {now} may not break clients of {version}.")
        return 1
    RELEASED.write_text(
        json.dumps(without_texts(current), indent=1, ensure_ascii=False, sort_keys=True) + "\n",
        "utf-8",
    )
    out(f"Clients of {now} rely on the present document.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
