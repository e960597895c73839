"""JSON schemas of the models of requests and responses."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core.core_schema import ModelSchema

from msgsvc_core.api.as_given import without_null
from msgsvc_core.api.endpoint import Endpoint, ResponseModel

Schema = dict[str, Any]

#: How pydantic begins the long names of the core's models.
_CORE = "msgsvc_core"

_REF = "#/components/schemas/{model}"


class _Schemas(GenerateJsonSchema):
    """As pydantic, less what misleads code generators: titles made of the names of fields, defaults that
    are null, and what a response may leave out."""

    def field_title_should_be_set(self, _schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        found = super().default_schema(schema)
        # It says only that the field may be left out; generators would read it as a value.
        if found.get("default", ...) is None:
            del found["default"]
        return found

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        found = super().model_schema(schema)
        model = schema["cls"]
        if self.mode == "serialization" and issubclass(model, ResponseModel):
            self._as_response(model, self.resolve_ref_schema(found))
        return found

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        ordered: JsonSchemaValue = _in_order(value, parent_key)
        return ordered

    @staticmethod
    def _as_response(model: type[ResponseModel], schema: Schema) -> None:
        properties = schema.get("properties", {})
        absent = model.leave_out_none | {
            name for name, field in model.model_fields.items() if field.exclude_if
        }
        for name, field in properties.items():
            field.pop("default", None)
            if name in absent:
                properties[name] = without_null(field)
        if required := [name for name in properties if name not in absent]:
            schema["required"] = required
        # A later version may add fields.
        schema.pop("additionalProperties", None)


def _in_order(value: Any, key: str | None) -> Any:
    """Keywords by name; fields, and what examples hold, as they were written."""
    if isinstance(value, list):
        return [_in_order(each, key) for each in value]
    if not isinstance(value, dict) or key == "examples":
        return value
    names = value if key in {"properties", "default"} else sorted(value)
    return {name: _in_order(value[name], name) for name in names}


def schemas_of(
    endpoints: Iterable[Endpoint], others: Iterable[type[BaseModel]]
) -> tuple[dict[type[BaseModel], Schema], dict[str, Schema]]:
    """References by model, and the schemas that they lead to by name; `others` are further models of
    responses."""
    modes: dict[type[BaseModel], str] = dict.fromkeys(others, "serialization")
    for endpoint in endpoints:
        if endpoint.body:
            modes[endpoint.body] = "validation"
        if endpoint.query:
            modes[endpoint.query] = "validation"
        if endpoint.parts:
            modes[endpoint.parts] = "validation"
        if endpoint.answer:
            modes[endpoint.answer] = "serialization"
    by_model, document = models_json_schema(
        list(modes.items()),  # type: ignore[arg-type] # its modes are literals, ours text
        ref_template=_REF,
        schema_generator=_Schemas,
    )
    references = {model: schema for (model, _), schema in by_model.items()}
    schemas = _as_described(document.get("$defs", {}))
    names = _core_names(schemas)
    references = _renamed(references, names)
    schemas = {names.get(name, name): _renamed(schema, names) for name, schema in schemas.items()}
    titles = {schema["title"]: name for name, schema in schemas.items() if "title" in schema}
    whole = {
        name: {key: _with_references(value, schemas, titles) for key, value in schema.items()}
        for name, schema in schemas.items()
    }
    public = _public_names(whole)
    named = {
        public.get(name, name): {
            **schema,
            **({"title": public[name]} if name in public else {}),
        }
        for name, schema in whole.items()
    }
    return _renamed(references, public), {
        name: _renamed(schema, public) for name, schema in named.items()
    }


def _public_names(schemas: Mapping[str, Schema]) -> dict[str, str]:
    """The names that clients see, by those of the models. A model may have its own, the `title` of its
    configuration; a response is called after its resource: clients have a class `Tag`, no `TagAnswer`."""
    titles = {name: str(schema.get("title", name)) for name, schema in schemas.items()}
    own = {name: title for name, title in titles.items() if title != name and "__" not in name}
    taken = {own.get(name, name) for name in schemas}
    suffix = "Answer"
    answers = {name: name.removesuffix(suffix) for name in schemas if name.endswith(suffix)}
    return {
        **{name: short for name, short in answers.items() if short and short not in taken},
        **own,
    }


def _core_names(schemas: Iterable[str]) -> dict[str, str]:
    """Short names of the core's models that share theirs with a plugin's, by the long name that pydantic
    gives both. A model of the core is called the same whatever is loaded."""
    long = {name: name.rpartition("__")[2] for name in schemas if name.startswith(f"{_CORE}__")}
    shared = Counter(long.values())
    return {name: short for name, short in long.items() if shared[short] == 1}


def _resource_names(schemas: Collection[str]) -> dict[str, str]:
    """The names of responses' models without `Answer`: clients have a class `Tag`, no `TagAnswer`. A name
    that another model has stays as it is."""
    suffix = "Answer"
    found = {name: name.removesuffix(suffix) for name in schemas if name.endswith(suffix)}
    return {name: short for name, short in found.items() if short and short not in schemas}


def _renamed(part: Any, names: Mapping[str, str]) -> Any:
    """The same with references to these schemas by their new names."""
    if not names:
        return part
    if isinstance(part, list):
        return [_renamed(each, names) for each in part]
    if not isinstance(part, dict):
        return part
    found = {key: _renamed(value, names) for key, value in part.items()}
    if isinstance(reference := part.get("$ref"), str):
        name = reference.rpartition("/")[2]
        found["$ref"] = _REF.format(model=names.get(name, name))
    return found


def _with_references(schema: Any, schemas: Mapping[str, Schema], titles: Mapping[str, str]) -> Any:
    """The schema with references in place of models that are written out: `SkipValidation` does that."""
    if isinstance(schema, list):
        return [_with_references(each, schemas, titles) for each in schema]
    if not isinstance(schema, dict):
        return schema
    name = titles.get(str(schema.get("title")), "")
    if name and schema == schemas[name]:
        return {"$ref": _REF.format(model=name)}
    return {key: _with_references(value, schemas, titles) for key, value in schema.items()}


def _as_described(schema: Any) -> Any:
    """The schema with the description and the examples of a field that may be null at the field."""
    if isinstance(schema, list):
        return [_as_described(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _as_described(value) for name, value in schema.items()}
    match found.get("anyOf"):
        case [dict() as only, {"type": "null"}]:
            for name in ("description", "examples"):
                if name in only:
                    found.setdefault(name, only.pop(name))
                    only.pop(name, None)
    return found
