"""What the OpenAPI document says, as objects that the templates of both clients read.

    contract = Contract.read(Path("contrib/openapi.json"))

`contract.root` is the tree of resources with their methods, by the names in `names.py`; models, events and
error codes are lists. Whatever the templates can't express raises `ContractError` here, so that a client is
never generated with a part left out.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from contrib.clients.codegen.names import DOTTED_NAMES, NOT_IN_CLIENTS

_SCHEMA_PREFIX = "#/components/schemas/"

#: Statuses whose errors are retryable (docs/decisions/0075).
RETRYABLE_STATUSES = frozenset({425, 429, 500, 503})

#: Fields of answers that hold a secret, in any model or in one: clients don't show them when they print an
#: object.
SECRET_FIELDS = frozenset({"secret", "client_secret", "token", "SessionStatus.code"})


class ContractError(Exception):
    """The document has something that the clients can't express."""


# Types ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scalar:
    """`string`, `integer`, `number`, `boolean`, or `any` for a value of any kind."""

    name: str
    #: `date-time`, `uri`, ...; empty if none.
    format: str = ""


@dataclass(frozen=True)
class Literals:
    """One of these values."""

    values: tuple[str | int | bool, ...]


@dataclass(frozen=True)
class Array:
    items: "Type"


@dataclass(frozen=True)
class Map:
    """An object whose names are data."""

    values: "Type"


@dataclass(frozen=True)
class Reference:
    """A model (`Contract.models`), or a named type (`Contract.aliases`)."""

    model: str


@dataclass(frozen=True)
class OneOf:
    """Any of several types. `discriminator` is the field whose value selects the model, by `mapping`."""

    options: tuple["Type", ...]
    discriminator: str = ""
    mapping: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Null:
    """`null`, as one of the options of a `OneOf`."""


Type = Scalar | Literals | Array | Map | Reference | OneOf | Null


def without_null(kind: Type) -> tuple[Type, bool]:
    """The type without `null` as an option, and whether it had it."""
    if isinstance(kind, OneOf) and Null() in kind.options:
        options = tuple(option for option in kind.options if option != Null())
        rest = options[0] if len(options) == 1 else OneOf(options, kind.discriminator, kind.mapping)
        return rest, True
    return kind, False


def references_of(kind: Type) -> Iterator[str]:
    """The names of the models that a type mentions."""
    match kind:
        case Reference(model):
            yield model
        case Array(inner) | Map(inner):
            yield from references_of(inner)
        case OneOf(options):
            for option in options:
                yield from references_of(option)


# Models --------------------------------------------------------------------------------------------------

_NO_DEFAULT: Final = object()


@dataclass(frozen=True)
class Field:
    """A property of a model, a query parameter, or a path parameter."""

    name: str
    #: Without `null`, which `nullable` stands for.
    type: Type
    required: bool
    nullable: bool
    description: str = ""
    default: Any = _NO_DEFAULT
    #: Whether it is one of `SECRET_FIELDS`.
    is_secret: bool = False

    @property
    def has_default(self) -> bool:
        return self.default is not _NO_DEFAULT


@dataclass(frozen=True)
class Model:
    """An object with known fields."""

    name: str
    description: str
    fields: tuple[Field, ...]

    def field(self, name: str) -> Field | None:
        return next((each for each in self.fields if each.name == name), None)


@dataclass(frozen=True)
class Alias:
    """A named type that is no object, such as the reasons of a failed delivery."""

    name: str
    description: str
    type: Type


# Operations ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ErrorCode:
    """A `code` of error answers. `description` is empty if the document doesn't say what it means."""

    code: str
    status: int
    retryable: bool
    description: str = ""

    @property
    def class_name(self) -> str:
        return "".join(part.capitalize() for part in self.code.split("_"))


@dataclass(frozen=True)
class Method:
    """One operation of the API."""

    operation_id: str
    #: `("auth", "sessions", "create")`.
    dotted: tuple[str, ...]
    http_method: str
    #: With its parameters in braces: `/v1/subscribers/{subscriber_id}`.
    path: str
    summary: str
    description: str
    path_parameters: tuple[Field, ...]
    query: tuple[Field, ...]
    #: The model of a JSON body; its fields are the arguments of the method.
    body: Model | None
    #: Whether the body is multipart/form-data: a file under `upload_field`, and the parts in `query`.
    takes_file: bool
    upload_field: str
    status: int
    #: The type of a JSON answer; None for a file or no body.
    answer: Type | None
    #: The media type of an answer that isn't JSON: `text/csv`, `application/octet-stream`; empty for others.
    media_type: str
    #: Whether the request may carry an `Idempotency-Key`.
    takes_idempotency_key: bool
    #: For a list that is read page by page: the type of one item.
    item: Type | None
    error_codes: tuple[str, ...]
    #: Whether it needs no API key.
    public: bool

    @property
    def name(self) -> str:
        return self.dotted[-1]

    @property
    def answer_model(self) -> str:
        """The name of the answer's model; empty if the answer is something else."""
        return self.answer.model if isinstance(self.answer, Reference) else ""

    @property
    def item_model(self) -> str:
        return self.item.model if isinstance(self.item, Reference) else ""

    @property
    def filters(self) -> tuple[Field, ...]:
        """The query parameters besides the cursor, which a paginated list handles itself."""
        return tuple(each for each in self.query if not (self.item and each.name == "cursor"))


@dataclass
class Resource:
    """A group of methods: `client.auth`, `client.auth.sessions`."""

    #: `("auth", "sessions")`; empty for the client itself.
    dotted: tuple[str, ...]
    methods: list[Method] = field(default_factory=list)
    children: "dict[str, Resource]" = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.dotted[-1] if self.dotted else ""

    @property
    def class_name(self) -> str:
        """`AuthSessions`."""
        return "".join(part.capitalize() for name in self.dotted for part in name.split("_"))

    def walk(self) -> "Iterator[Resource]":
        """This resource and all below it, the deepest first."""
        for child in self.children.values():
            yield from child.walk()
        yield self


@dataclass(frozen=True)
class Event:
    """An event of webhooks and of `GET /v1/events`. `data` is the model of its `data`, or a map."""

    name: str
    description: str
    data: Type

    @property
    def class_name(self) -> str:
        """`AuthCompleted`."""
        return "".join(part.capitalize() for part in re.split(r"[._]", self.name))


# The document --------------------------------------------------------------------------------------------


class Contract:
    """The whole document. Raises `ContractError` if an operation has no name, or a part is unknown."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.version: str = document["info"]["version"]
        self._schemas: dict[str, Any] = dict(document["components"]["schemas"])
        self._by_title = {schema.get("title", name): name for name, schema in self._schemas.items()}
        #: Objects that the document describes in place; they get a name by where they stand.
        self._inline: dict[str, Any] = {}

    @classmethod
    def read(cls, path: Path) -> "Contract":
        return cls(json.loads(path.read_text("utf-8")))

    @cached_property
    def methods(self) -> tuple[Method, ...]:
        """All operations that the clients have, in the order of the document."""
        found = []
        unnamed = []
        for path, operations in self.document["paths"].items():
            for http_method, operation in operations.items():
                operation_id = operation["operationId"]
                if operation_id in NOT_IN_CLIENTS:
                    continue
                if operation_id not in DOTTED_NAMES:
                    unnamed.append(operation_id)
                    continue
                found.append(self._method(http_method.upper(), path, operation))
        if unnamed:
            raise ContractError(f"names.py has no name for {', '.join(sorted(unnamed))}")
        return tuple(found)

    @cached_property
    def root(self) -> Resource:
        """The tree of resources."""
        root = Resource(())
        for method in self.methods:
            resource = root
            for depth, name in enumerate(method.dotted[:-1]):
                resource = resource.children.setdefault(name, Resource(method.dotted[: depth + 1]))
            resource.methods.append(method)
        return root

    @property
    def resources(self) -> list[Resource]:
        """All resources but the root, the deepest first."""
        return [resource for resource in self.root.walk() if resource.dotted]

    @cached_property
    def models(self) -> dict[str, Model]:
        """The models that operations and events use, by name, in alphabetical order."""
        return dict(sorted(self._used.models.items()))

    @cached_property
    def aliases(self) -> dict[str, Alias]:
        return dict(sorted(self._used.aliases.items()))

    @cached_property
    def answer_models(self) -> frozenset[str]:
        """Models that occur in answers and events, the list pages included."""
        starts = [kind for method in self.methods if (kind := method.answer)]
        return self._reach([*starts, *(event.data for event in self.events)])

    @cached_property
    def body_models(self) -> frozenset[str]:
        """Models that occur inside of bodies and as bodies."""
        return self._reach([Reference(method.body.name) for method in self.methods if method.body])

    @cached_property
    def page_models(self) -> frozenset[str]:
        """Answers that are a page of a list: `data` and `next_cursor`."""
        return frozenset(method.answer_model for method in self.methods if method.item)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """All events, by name; empty if the document has no `webhooks`."""
        found = []
        for name, operations in sorted(self.document.get("webhooks", {}).items()):
            operation = operations["post"]
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            if "$ref" in schema:
                schema = self._schemas[schema["$ref"].removeprefix(_SCHEMA_PREFIX)]
            data = self._type(schema["properties"]["data"], f"{name} data")
            description = operation.get("description") or operation.get("summary", "")
            found.append(Event(name, description, data))
        return tuple(found)

    @cached_property
    def error_codes(self) -> tuple[ErrorCode, ...]:
        """Every code that an operation of the clients can answer with."""
        described = self.document["components"].get("x-errors", {})
        found: dict[str, ErrorCode] = {}
        for operations in self.document["paths"].values():
            for operation in operations.values():
                if operation["operationId"] in NOT_IN_CLIENTS:
                    continue
                for status, code in self._codes_of(operation):
                    text = described.get(code, {}).get("description", "")
                    found[code] = ErrorCode(code, status, status in RETRYABLE_STATUSES, text)
        return tuple(sorted(found.values(), key=lambda each: (each.status, each.code)))

    # Reading operations

    def _method(self, http_method: str, path: str, operation: Mapping[str, Any]) -> Method:
        operation_id = operation["operationId"]
        parameters = [self.resolved(each) for each in operation.get("parameters", ())]
        named = {(each["in"], each["name"]): each for each in parameters}
        path_parameters = tuple(
            self._parameter(named["path", name], operation_id)
            for name in re.findall(r"{(\w+)}", path)
        )
        query = tuple(
            self._parameter(each, operation_id) for each in parameters if each["in"] == "query"
        )
        body, upload_field = self._body(operation)
        if upload_field:
            query += self._parts(operation, upload_field)
        status, answer, media_type = self._answer(operation)
        method = Method(
            operation_id=operation_id,
            dotted=tuple(DOTTED_NAMES[operation_id].split(".")),
            http_method=http_method,
            path=path,
            summary=operation["summary"],
            description=operation.get("description", ""),
            path_parameters=path_parameters,
            query=query,
            body=body,
            takes_file=bool(upload_field),
            upload_field=upload_field,
            status=status,
            answer=answer,
            media_type=media_type,
            takes_idempotency_key=("header", "Idempotency-Key") in named,
            item=self._item(query, answer),
            error_codes=tuple(dict.fromkeys(code for _status, code in self._codes_of(operation))),
            public=operation.get("security") == [],
        )
        _check_arguments(method)
        return method

    def _parts(self, operation: Mapping[str, Any], upload_field: str) -> tuple[Field, ...]:
        """The other parts of an upload. Methods take them like query parameters and send them in the body."""
        schema = self.resolved(operation["requestBody"]["content"]["multipart/form-data"]["schema"])
        return tuple(
            self._parameter({"name": name, "schema": each}, operation["operationId"])
            for name, each in schema["properties"].items()
            if name != upload_field
        )

    def _parameter(self, parameter: Mapping[str, Any], operation_id: str) -> Field:
        schema = parameter["schema"]
        kind, _ = without_null(self._type(schema, f"{operation_id} {parameter['name']}"))
        return Field(
            name=parameter["name"],
            type=kind,
            required=bool(parameter.get("required")),
            # A query string has no null: such a parameter may only be left out.
            nullable=False,
            description=parameter.get("description") or schema.get("description", ""),
            default=schema.get("default", _NO_DEFAULT),
        )

    def _codes_of(self, operation: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
        """Status and code of each error of an operation."""
        for status, reference in operation["responses"].items():
            if status.isdigit() and int(status) >= 400:
                response = self.resolved(reference)
                codes = response.get("x-error-codes") or re.findall(
                    r"`(\w+)`", response["description"]
                )
                for code in codes:
                    yield int(status), code

    def _body(self, operation: Mapping[str, Any]) -> tuple[Model | None, str]:
        content = operation.get("requestBody", {}).get("content", {})
        if "multipart/form-data" in content:
            schema = self.resolved(content["multipart/form-data"]["schema"])
            (name,) = schema["required"]
            return None, name
        if not content:
            return None, ""
        if set(content) != {"application/json"}:
            raise ContractError(f"{operation['operationId']}: a body of {', '.join(content)}")
        kind = self._type(content["application/json"]["schema"], operation["operationId"])
        if not isinstance(kind, Reference):
            raise ContractError(f"{operation['operationId']}: its body is no named model")
        return self._model(kind.model), ""

    def _answer(self, operation: Mapping[str, Any]) -> tuple[int, Type | None, str]:
        successes = {int(s): r for s, r in operation["responses"].items() if s.startswith("2")}
        if len(successes) != 1:
            raise ContractError(f"{operation['operationId']}: one success status is expected")
        ((status, response),) = successes.items()
        content = response.get("content", {})
        if "application/json" in content:
            schema = content["application/json"]["schema"]
            return status, self._type(schema, operation["operationId"]), ""
        return status, None, next(iter(content), "")

    def _item(self, query: tuple[Field, ...], answer: Type | None) -> Type | None:
        if not isinstance(answer, Reference) or "cursor" not in {each.name for each in query}:
            return None
        model = self._model(answer.model)
        data = model.field("data")
        if data is None or model.field("next_cursor") is None or not isinstance(data.type, Array):
            return None
        return data.type.items

    # Reading schemas

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a reference refers to; anything else unchanged."""
        if "$ref" not in schema:
            return schema
        _, _, kind, name = schema["$ref"].split("/")
        found: Mapping[str, Any] = self.document["components"][kind][name]
        return found

    def _type(self, schema: Any, where: str) -> Type:  # noqa: C901, PLR0911, PLR0912 # one case for each kind of schema
        if schema is True or not schema:
            return Scalar("any")
        if "$ref" in schema:
            return Reference(schema["$ref"].removeprefix(_SCHEMA_PREFIX))
        if "allOf" in schema and len(schema["allOf"]) == 1:
            return self._type(schema["allOf"][0], where)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._one_of(schema, schema[keyword], where)
        if "const" in schema:
            return Literals((schema["const"],))
        if "enum" in schema:
            return Literals(tuple(schema["enum"]))
        kind = schema.get("type")
        if isinstance(kind, list):
            options = [{**schema, "type": each} for each in kind]
            return self._one_of({}, options, where)
        match kind:
            case "string" | "integer" | "number" | "boolean":
                return Scalar(kind, schema.get("format", ""))
            case "null":
                return Null()
            case "array":
                return Array(self._type(schema.get("items", True), f"{where} items"))
            case "object" if "properties" in schema:
                return Reference(self._inline_name(schema, where))
            case "object":
                return Map(self._map_values(schema, where))
            case None:
                return Scalar("any")
        raise ContractError(f"{where}: a schema of an unknown kind: {json.dumps(schema)[:200]}")

    def _one_of(self, schema: Mapping[str, Any], options: list[Any], where: str) -> Type:
        kinds: list[Type] = []
        for option in options:
            kind = self._type(option, where)
            inner = kind.options if isinstance(kind, OneOf) and not kind.mapping else (kind,)
            kinds += [each for each in inner if each not in kinds]
        if Scalar("number") in kinds and Scalar("integer") in kinds:
            kinds.remove(Scalar("integer"))
        discriminator = schema.get("discriminator", {})
        mapping = tuple(
            (value, reference.removeprefix(_SCHEMA_PREFIX))
            for value, reference in discriminator.get("mapping", {}).items()
        )
        if len(kinds) == 1:
            return kinds[0]
        return OneOf(tuple(kinds), discriminator.get("propertyName", ""), mapping)

    def _map_values(self, schema: Mapping[str, Any], where: str) -> Type:
        patterns = list(schema.get("patternProperties", {}).values())
        if patterns:
            return self._type(patterns[0], where)
        return self._type(schema.get("additionalProperties", True), where)

    def _inline_name(self, schema: Mapping[str, Any], where: str) -> str:
        """The component of the same title, or a name for an object described in place."""
        title = schema.get("title", "")
        if title in self._by_title:
            return self._by_title[title]
        name = title if title.isidentifier() else "".join(map(_capital, re.split(r"\W+|_", where)))
        if self._inline.setdefault(name, schema) != schema:
            raise ContractError(f"{where}: two different objects are called {name}")
        return name

    def _model(self, name: str) -> Model:
        schema = self._schemas.get(name) or self._inline[name]
        required = set(schema.get("required", ()))
        fields = []
        for key, described in schema.get("properties", {}).items():
            kind, nullable = without_null(self._type(described, f"{name} {key}"))
            fields.append(
                Field(
                    name=key,
                    type=kind,
                    required=key in required,
                    nullable=nullable,
                    description=described.get("description", ""),
                    default=described.get("default", _NO_DEFAULT),
                    is_secret=bool(SECRET_FIELDS & {key, f"{name}.{key}"}),
                )
            )
        return Model(name, schema.get("description", ""), tuple(fields))

    # Which models are used

    @cached_property
    def _used(self) -> "_Used":
        used = _Used()
        starts: list[Type] = [event.data for event in self.events]
        for method in self.methods:
            starts += [kind for kind in (method.answer, method.item) if kind]
            starts += [each.type for each in method.query]
            if method.body:
                starts.append(Reference(method.body.name))
        waiting = [name for kind in starts for name in references_of(kind)]
        while waiting:
            name = waiting.pop()
            if name in used.models or name in used.aliases:
                continue
            schema = self._schemas.get(name) or self._inline[name]
            if "properties" in schema:
                model = used.models[name] = self._model(name)
                kinds = [each.type for each in model.fields]
            else:
                kind = self._type(schema, name)
                used.aliases[name] = Alias(name, schema.get("description", ""), kind)
                kinds = [kind]
            waiting += [inner for each in kinds for inner in references_of(each)]
        return used

    def _reach(self, starts: list[Type]) -> frozenset[str]:
        """The models that can be reached from these types."""
        found: set[str] = set()
        waiting = [name for kind in starts for name in references_of(kind)]
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            if name in self.aliases:
                waiting += references_of(self.aliases[name].type)
                continue
            found.add(name)
            waiting += [
                inner for each in self.models[name].fields for inner in references_of(each.type)
            ]
        return frozenset(found)


@dataclass
class _Used:
    models: dict[str, Model] = field(default_factory=dict)
    aliases: dict[str, Alias] = field(default_factory=dict)


def _capital(part: str) -> str:
    return part[:1].upper() + part[1:]


def _check_arguments(method: Method) -> None:
    """Path parameters, query and body become arguments side by side, so that no two may have one name."""
    names = [each.name for each in (*method.path_parameters, *method.query)]
    names += [each.name for each in method.body.fields] if method.body else []
    names += ["idempotency_key", "timeout_s"]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise ContractError(f"{method.operation_id}: two arguments are called {', '.join(double)}")
