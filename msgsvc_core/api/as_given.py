"""Parts of request bodies in responses, as they were given."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T", bound=BaseModel)


def _set_fields(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_unset=True)


@dataclass(frozen=True)
class _AsGiven:
    """Serialises without the fields that were left out; the JSON Schema stays that of the model."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema: Any = handler(source)
        assert schema["type"] == "definition-ref", "it is for a model"
        return {
            **schema,
            "serialization": core_schema.plain_serializer_function_ser_schema(_set_fields),
        }

    def __get_pydantic_json_schema__(
        self, schema: Mapping[str, Any], handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        own: Any = {name: value for name, value in schema.items() if name != "serialization"}
        return handler(own)


#: A model of requests in a response, `steps: list[AsGiven[Step]]`, with the fields that were given alone.
AsGiven = Annotated[T, _AsGiven()]


def without_null(field: dict[str, Any]) -> dict[str, Any]:
    """The schema without the alternative that is null, with what stands beside the alternatives."""
    others = [each for each in field.get("anyOf", ()) if each.get("type") != "null"]
    if not others:
        return field
    rest = {name: value for name, value in field.items() if name != "anyOf"}
    return {**others[0], **rest} if len(others) == 1 else {"anyOf": others, **rest}
