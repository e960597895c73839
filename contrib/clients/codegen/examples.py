"""An operation as a call in curl, Python and TypeScript, with the examples of its OpenAPI document."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from contrib.clients.codegen.contract import Method
from contrib.clients.codegen.python_client import identifier
from contrib.clients.codegen.typescript_client import camel, property_name

#: How a request is shown.
BASE = "https://msgsvc.example"

#: Columns of a line; a longer value is written over several.
_WIDTH = 84


class Example(NamedTuple):
    """`language` is the name by which it is highlighted, `title` what people call it."""

    language: str
    title: str
    code: str


class Examples:
    """`values` are the examples of path and required query parameters, `body` that of a JSON body."""

    def __init__(self, method: Method, values: Mapping[str, Any], body: Any) -> None:
        self._method = method
        self._values = values
        self._body = body

    def __iter__(self) -> Iterator[Example]:
        """In each language, of which pages make tabs."""
        yield Example("sh", "curl", self.curl())
        yield Example("python", "Python", self.python())
        yield Example("ts", "TypeScript", self.typescript())

    def python(self) -> str:
        """A program with `msgsvc_client`."""
        method = self._method
        fields = {**self._required_query(), **(self._body or {})}
        arguments = [_python(self._values[each.name]) for each in method.path_parameters]
        if method.takes_file:
            arguments += ["file", f'filename="{_file(method.path)}"']
        arguments += [f"{identifier(name)}={_python(value, 1)}" for name, value in fields.items()]
        call = _call(f"client.{'.'.join(method.dotted)}", arguments)
        if method.takes_file:
            call = f'with open("{_file(method.path)}", "rb") as file:\n    answer = {call}'
        elif method.media_type == "text/csv":
            call = f"with {call} as export:\n    for row in export.rows():\n        print(row)"
        elif method.media_type:
            call = f"with {call} as download:\n    content = download.read()"
        elif method.item:
            call = f"for each in {call}:\n    print(each)"
        elif method.answer:
            call = f"answer = {call}"
        return (
            "import os\n\nfrom msgsvc_client import Client\n\n"
            f'client = Client(os.environ["KEY"], "{BASE}")\n{call}\n'
        )

    def typescript(self) -> str:
        """A module with `@msgsvc/client`."""
        method = self._method
        arguments = [_typescript(self._values[each.name]) for each in method.path_parameters]
        if method.takes_file:
            arguments.append("file")
        if method.body and self._body:
            arguments.append(_typescript(self._body))
        elif method.body and self._required_query():
            arguments.append("{}")
        if query := self._required_query():
            arguments.append(_typescript(query))
        name = ".".join(map(camel, method.dotted))
        call = f"client.{name}({', '.join(arguments)})"
        if method.takes_file:
            file = _file(method.path)
            call = f'const file = await openAsBlob("{file}");\nconst answer = await {call};'
        elif method.media_type:
            call = f"const download = await {call};\nconst content = await download.text();"
        elif method.item:
            call = f"for await (const each of {call}) console.log(each);"
        elif method.answer:
            call = f"const answer = await {call};"
        else:
            call = f"await {call};"
        imports = 'import { openAsBlob } from "node:fs";\n' if method.takes_file else ""
        return (
            f'{imports}import {{ Client }} from "@msgsvc/client";\n\n'
            "const client = new Client({\n"
            f'  baseUrl: "{BASE}",\n'
            '  apiKey: process.env.KEY ?? "",\n'
            f"}});\n{call}\n"
        )

    def _required_query(self) -> dict[str, Any]:
        return {each.name: self._values[each.name] for each in self._method.query if each.required}

    def curl(self) -> str:
        """A command line."""
        return curl(
            self._method.http_method,
            self._method.path,
            self._values,
            self._body,
            is_public=self._method.public,
            is_file=self._method.takes_file,
        )


def curl(
    method: str,
    path: str,
    values: Mapping[str, Any],
    body: Any,
    *,
    is_public: bool = False,
    is_file: bool = False,
) -> str:
    """A command for any operation, also one that the clients don't have."""
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", str(value))
    lines = [f"curl {'' if method in ('GET', 'POST') else f'-X {method} '}{BASE}{path}"]
    if not is_public:
        lines.append('-H "Authorization: Bearer $KEY"')
    if body is not None:
        shown = json.dumps(body, ensure_ascii=False, indent=2).replace("'", "'\\''")
        lines += ['-H "Content-Type: application/json"', f"-d '{shown}'"]
    elif is_file:
        lines.append(f'-F "file=@{_file(path)}"')
    elif method == "POST":
        lines[0] = lines[0].replace("curl ", "curl -X POST ")
    return " \\\n  ".join(lines) + "\n"


def _file(path: str) -> str:
    """The name of a file that somebody might upload there."""
    return "logo.svg" if path.endswith("/logo") else "invoice.pdf"


def _call(function: str, arguments: Sequence[str]) -> str:
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= _WIDTH and "\n" not in line:
        return line
    return f"{function}(\n" + "".join(f"    {each},\n" for each in arguments) + ")"


def _python(value: Any, depth: int = 0) -> str:
    return _literal(value, depth, 4, _python_scalar, json.dumps)


def _typescript(value: Any, depth: int = 0) -> str:
    return _literal(value, depth, 2, _json, property_name)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _python_scalar(value: Any) -> str:
    return _json(value) if isinstance(value, str) else repr(value)


def _literal(
    value: Any, depth: int, step: int, scalar: Callable[[Any], str], name: Callable[[str], str]
) -> str:
    """A JSON value as source code; on one line if it fits."""
    if isinstance(value, Mapping):
        parts = [
            f"{name(key)}: {_literal(each, depth + 1, step, scalar, name)}"
            for key, each in value.items()
        ]
        brackets, space = "{}", " " if step == 2 else ""
    elif isinstance(value, list):
        parts = [_literal(each, depth + 1, step, scalar, name) for each in value]
        brackets, space = "[]", ""
    else:
        return scalar(value)
    if not parts:
        return brackets
    line = f"{brackets[0]}{space}{', '.join(parts)}{space}{brackets[1]}"
    if len(line) + depth * step <= _WIDTH - 20 and "\n" not in line:
        return line
    indent = " " * (step * (depth + 1))
    return (
        f"{brackets[0]}\n"
        + "".join(f"{indent}{each},\n" for each in parts)
        + " " * (step * depth)
        + brackets[1]
    )
