"""Generates the TypeScript client: types, resources, errors and events."""

import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from contrib.clients.codegen.contract import (
    Array,
    Contract,
    ContractError,
    Field,
    Literals,
    Map,
    Method,
    Null,
    OneOf,
    Reference,
    Resource,
    Scalar,
    Type,
    references_of,
)
from contrib.clients.codegen.rendering import ROOT, templates

FOLDER = ROOT / "contrib/clients/typescript/src/generated"

#: Columns of a line of documentation.
WIDTH = 110

#: Resources with operations that are written by hand, in the class that they extend: (its name, its module).
BASES = {
    ("auth", "sessions"): ("SessionWaiting", "../sessions.js"),
    ("events",): ("EventFollowing", "../events.js"),
}

#: Items whose type is made from the events: (its name, its module).
ITEMS = {"list_events": ("FeedEvent", "../events.js")}

_SCALARS = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "any": "unknown",
}


def generate(contract: Contract) -> Mapping[Path, Mapping[str, str]]:
    """The generated files, by folder and by name."""
    environment = templates("typescript")
    environment.filters |= {
        "doc": doc,
        "camel": camel,
        "type": type_of,
        "property": property_name,
        "json": json.dumps,
    }
    spelling = _Spelling(contract)
    files = {
        name: environment.get_template(f"{name}.j2").render(contract=contract, ts=spelling)
        for name in ("errors.ts", "events.ts", "resources.ts", "types.ts")
    }
    return {FOLDER: files}


class _Spelling:
    """What the templates ask for of the contract."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.common_codes = frozenset.intersection(
            *(frozenset(method.error_codes) for method in contract.methods)
        )

    def field_type(self, model: str, field: Field) -> str:
        """With `undefined` where a caller may write it out; `JSON.stringify` leaves it out."""
        spelled = nullable(type_of(field.type), field.nullable)
        may_be_undefined = not field.required and model in self.contract.body_models
        return f"{spelled} | undefined" if may_be_undefined else spelled

    def error_class(self, class_name: str) -> str:
        return class_name if class_name.endswith("Error") else f"{class_name}Error"

    def resource_class(self, resource: Resource) -> str:
        return f"{resource.class_name}Resource"

    def base(self, resource: Resource) -> str:
        return BASES[resource.dotted][0] if resource.dotted in BASES else "Resource"

    def bases(self) -> list[tuple[str, str]]:
        return sorted(BASES.values(), key=lambda base: base[1])

    def query_class(self, method: Method) -> str:
        """`ListSubscribersQuery`."""
        name = "".join(part.capitalize() for part in method.operation_id.split("_"))
        return f"{name}Query"

    def item(self, method: Method) -> str:
        if method.operation_id in ITEMS:
            return ITEMS[method.operation_id][0]
        assert method.item is not None
        return type_of(method.item)

    def result(self, method: Method) -> str:
        if method.item is not None:
            return f"Paginator<{self.item(method)}>"
        if method.media_type:
            return "Promise<Download>"
        return f"Promise<{type_of(method.answer)}>" if method.answer else "Promise<void>"

    def call(self, method: Method) -> str:
        """The method of `Transport` that makes the request."""
        if method.item is not None:
            return f"list<{self.item(method)}>"
        if method.media_type:
            return "download"
        return f"json<{type_of(method.answer)}>" if method.answer else "json<void>"

    def options(self, method: Method) -> str:
        if method.takes_file:
            return "UploadOptions"
        return "PostOptions" if method.takes_idempotency_key else "RequestOptions"

    def arguments(self, method: Method) -> list[str]:
        """Path, body, query, options."""
        found = [f"{camel(each.name)}: string" for each in method.path_parameters]
        if method.takes_file:
            found.append("file: FileContent")
        if method.body:
            needed = any(each.required for each in method.body.fields)
            found.append(f"body: {method.body.name}" + ("" if needed else " = {}"))
        if method.query:
            needed = any(each.required for each in method.query)
            found.append(f"query: {self.query_class(method)}" + ("" if needed else " = {}"))
        return [*found, f"options?: {self.options(method)}"]

    def signature(self, method: Method) -> str:
        """The arguments in their parentheses, on one line if there is one."""
        arguments = self.arguments(method)
        if len(arguments) == 1:
            return f"({arguments[0]})"
        return "".join(["(\n", *(f"    {argument},\n" for argument in arguments), "  )"])

    def path(self, method: Method) -> str:
        """As a literal of TypeScript."""
        path = method.path
        for each in method.path_parameters:
            argument = camel(each.name)
            path = path.replace(f"{{{each.name}}}", f'${{segment({argument}, "{argument}")}}')
        return f"`{path}`" if method.path_parameters else json.dumps(path)

    def secrets(self, method: Method) -> list[str]:
        """Fields of the answer that are not shown. Raises `ContractError` for those that lie deeper."""
        found = self._secrets_in(method.answer_model)
        deeper = {
            f"{model}.{name}"
            for field in self._fields(method.answer_model)
            for model in references_of(field.type)
            for name in self._secrets_in(model)
        }
        if deeper:
            raise ContractError(f"{method.operation_id}: shows {', '.join(sorted(deeper))}")
        return found

    def _secrets_in(self, model: str) -> list[str]:
        return [field.name for field in self._fields(model) if field.is_secret]

    def _fields(self, model: str) -> tuple[Field, ...]:
        return self.contract.models[model].fields if model in self.contract.models else ()

    def codes(self, method: Method) -> list[str]:
        """The codes of this operation that not every operation has."""
        return [code for code in method.error_codes if code not in self.common_codes]

    def imported_types(self) -> list[str]:
        """The names that resources.ts takes from types.ts."""
        names: set[str] = set()
        for method in self.contract.methods:
            kinds: list[Type] = [each.type for each in method.query]
            if method.item is None:
                kinds += [method.answer] if method.answer else []
            elif method.operation_id not in ITEMS:
                kinds.append(method.item)
            names |= {name for kind in kinds for name in references_of(kind)}
            names |= {method.body.name} if method.body else set()
        return sorted(names)

    def event_types(self) -> list[str]:
        """The names that events.ts takes from types.ts."""
        return sorted(
            {name for event in self.contract.events for name in references_of(event.data)}
        )


def camel(name: str) -> str:
    """`sendBatch` of `send_batch`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def nullable(spelled: str, is_nullable: bool) -> str:
    return f"{spelled} | null" if is_nullable and spelled != "unknown" else spelled


def type_of(kind: Type) -> str:  # noqa: PLR0911 # one case for each kind of type
    """The type as TypeScript spells it."""
    match kind:
        case Scalar(name):
            return _SCALARS[name]
        case Literals(values):
            return " | ".join(json.dumps(value) for value in values)
        case Array(items):
            return f"Array<{type_of(items)}>"
        case Map(values):
            return f"Record<string, {type_of(values)}>"
        case Reference(model):
            return model
        case OneOf(options):
            return " | ".join(dict.fromkeys(type_of(option) for option in options))
        case Null():
            return "null"
    raise ContractError(f"no type of TypeScript for {kind}")


def property_name(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def doc(text: Any, indent: int = 0, *more: str) -> str:
    """A comment of documentation; empty if there is nothing to say. `more` are further paragraphs."""
    paragraphs = [*_paragraphs(str(text)), *([each] for each in more if each)]
    space = " " * indent
    width = WIDTH - indent - 3
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += [""] if lines else []
        for line in paragraph:
            lines += textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    if not lines:
        return ""
    lines = [line.replace("*/", "*\\/") for line in lines]
    if len(lines) == 1:
        return f"{space}/** {lines[0]} */\n"
    return "".join(
        [f"{space}/**\n", *(f"{space} * {line}".rstrip() + "\n" for line in lines), f"{space} */\n"]
    )


def _paragraphs(text: str) -> Iterator[list[str]]:
    """The lines of each paragraph: one, or those of a list."""
    for paragraph in text.strip().split("\n\n"):
        lines = [line.strip() for line in paragraph.splitlines() if line.strip()]
        if not lines:
            continue
        if any(line.startswith(("- ", "| ", "* ")) for line in lines):
            yield lines
        else:
            yield [" ".join(lines)]
