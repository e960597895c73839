"""Linters and generators of others read contrib/openapi.json without a complaint.

A validator always reads it. Redocly and the generators take long, so tests with them are slow ones.
"""

import json
from pathlib import Path

import pytest

from tests.clients.tools import HERE, node_tool, python_tool, run

DOCUMENT = HERE.parents[1] / "contrib" / "openapi.json"

#: Imports every module of a package that stands in the working directory.
IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
names = [each.name for each in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""

#: Reads every example of the document by the module `models` in the working directory.
READ_EXAMPLES = """
import json, pathlib, sys, models
document = json.loads(pathlib.Path(sys.argv[1]).read_text("utf-8"))
count = 0
for methods in [*document["paths"].values(), *document["webhooks"].values()]:
    for operation in methods.values():
        for body in [operation.get("requestBody", {}), *operation["responses"].values()]:
            content = body.get("content", {}).get("application/json", {})
            if "example" in content:
                model = getattr(models, content["schema"]["$ref"].rpartition("/")[2])
                model.model_validate(content["example"])
                count += 1
print(count)
"""

#: What is read or imported is more than this: there are more operations.
LEAST_COUNT = 150

#: A program of a user, in TypeScript.
PROGRAM = """
import type { components, operations, webhooks } from "./api.js";

const body: components["schemas"]["SendBody"] = { external_id: "user-42", text: "Hello" };
type Sent = operations["send"]["responses"][202]["content"]["application/json"];
type Delivered = webhooks["delivery.success"]["post"]["requestBody"]["content"]["application/json"];

export function read(sent: Sent, event: Delivered): string[] {
  return [body.text ?? "", sent.message_id, event.event, event.data.message_id];
}
"""


def test_openapi_spec_validator_finds_it_valid() -> None:
    validator = python_tool("openapi-spec-validator", "openapi-spec-validator")

    said = run(validator, DOCUMENT)

    assert said.strip() == f"{DOCUMENT}: OK"


@pytest.mark.slow
def test_redocly_has_no_problem_and_no_warning() -> None:
    redocly = node_tool("redocly")

    said = run(redocly, "lint", "--config", HERE / "redocly.yaml", "--format", "json", DOCUMENT)

    found = json.JSONDecoder().raw_decode(said[said.index("{") :])[0]
    assert found["problems"] == []
    assert found["totals"] == {"errors": 0, "warnings": 0, "ignored": 0}


@pytest.mark.slow
def test_openapi_typescript_makes_types_that_compile(tmp_path: Path) -> None:
    generate, compile_ = node_tool("openapi-typescript"), node_tool("tsc")

    # It takes a field with a default for one that is always there, also in requests, unless told otherwise.
    options = ("--default-non-nullable", "false")
    said = run(generate, DOCUMENT, "--output", tmp_path / "api.ts", *options)
    (tmp_path / "program.ts").write_text(PROGRAM, "utf-8")
    strict = ("--strict", "--noEmit", "--target", "es2022", "--module", "nodenext")
    # The compiler's own declarations are not looked through each time.
    quick = ("--skipDefaultLibCheck", "--lib", "es2022")
    compiled = run(compile_, *strict, *quick, "program.ts", "api.ts", cwd=tmp_path)

    assert "warn" not in said.lower()
    assert compiled == ""


@pytest.mark.slow
def test_datamodel_code_generator_makes_models_that_read_the_examples(tmp_path: Path) -> None:
    python = python_tool("datamodel-code-generator", "python")

    said = run(
        python_tool("datamodel-code-generator", "datamodel-codegen"),
        *("--input", DOCUMENT, "--input-file-type", "openapi", "--output", tmp_path / "models.py"),
        *("--output-model-type", "pydantic_v2.BaseModel", "--target-python-version", "3.11"),
        *("--enum-field-as-literal", "all", "--formatters", "builtin"),
    )
    checked = run(python, "-W", "error", "-c", READ_EXAMPLES, DOCUMENT, cwd=tmp_path)

    assert said == ""
    assert int(checked) > LEAST_COUNT


@pytest.mark.slow
def test_openapi_python_client_makes_a_client_that_imports(tmp_path: Path) -> None:
    python = python_tool("openapi-python-client", "python")

    run(
        python_tool("openapi-python-client", "openapi-python-client"),
        *("generate", "--path", DOCUMENT, "--output-path", tmp_path / "msgsvc_api"),
        *("--meta", "none", "--config", HERE / "openapi-python-client.yml", "--fail-on-warning"),
    )
    imported = run(python, "-W", "error", "-c", IMPORT_ALL, "msgsvc_api", cwd=tmp_path)

    assert int(imported) > LEAST_COUNT
