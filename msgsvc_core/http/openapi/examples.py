"""Examples of requests and responses, composed from those of their fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Values of formats for which neither field nor type has an example.
_BY_FORMAT = {
    "date-time": "2026-03-01T09:30:00.000Z",
    "date": "2026-03-01",
    "uri": "https://shop.example/",
}

#: How deeply models are followed, for those that contain themselves.
_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Examples:
    """Finds or composes examples of schemas. `components` are the schemas that `$ref` names."""

    components: Mapping[str, Mapping[str, Any]]

    def of(self, schema: Mapping[str, Any], depth: int = 0) -> Any:
        """The schema's example; else one composed of the examples of its parts, from which optional fields
        without an example are left out. A null only for what has no other value."""
        if (found := self._declared(schema)) is not None:
            return found[0]
        schema = self._resolved(schema)
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return self.of(_first(schema[several]), depth + 1)
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        return _plain(schema)

    def is_declared(self, schema: Mapping[str, Any]) -> bool:
        """Whether the field, its type or its entries have an example of their own."""
        if self._resolved(schema).get("examples"):
            return True
        parts = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), schema.get("items", {})]
        return any(self.is_declared(part) for part in parts if part)

    def _declared(self, schema: Mapping[str, Any]) -> list[Any] | None:
        for each in (schema, self._resolved(schema)):
            if each.get("examples"):
                return list(each["examples"])
            if "const" in each:
                return [each["const"]]
            if each.get("default") is not None:
                return [each["default"]]
            if each.get("enum"):
                return list(each["enum"])
        return None

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            schema = self.components[schema["$ref"].rpartition("/")[2]]
        return schema

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        if depth > _MAX_DEPTH:
            return {}
        required = schema.get("required", ())
        return {
            name: self.of(field, depth + 1)
            for name, field in schema.get("properties", {}).items()
            if name in required or self.is_declared(field)
        }

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        if depth > _MAX_DEPTH:
            return []
        return [self.of(schema.get("items", {}), depth + 1)]


def _plain(schema: Mapping[str, Any]) -> Any:
    match schema.get("type"):
        case "string":
            return _BY_FORMAT.get(schema.get("format", ""), "text")
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
    return None


def _first(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """The first alternative other than null."""
    return next((each for each in schemas if each.get("type") != "null"), schemas[0])
