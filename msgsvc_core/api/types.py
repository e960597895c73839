"""Field types shared by request bodies, queries and responses.

Descriptions and examples cost nothing at run time. A field overrides the description of its type where it
says more: `subscriber_id: SubscriberId = Field(description=...)`.
"""

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

from msgsvc_core.api import examples
from msgsvc_core.kernel.clock import from_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.security.http_urls import MAX_URL_LENGTH, check_http_url, check_url_length

T = TypeVar("T")

#: An absolute http or https URL, as text.
HttpUrl = Annotated[
    str,
    AfterValidator(check_http_url),
    Field(json_schema_extra={"format": "uri", "maxLength": MAX_URL_LENGTH}),
]


#: A URL that its endpoint validates beyond its length.
UrlText = Annotated[
    str,
    AfterValidator(check_url_length),
    Field(json_schema_extra={"format": "uri", "maxLength": MAX_URL_LENGTH}),
]


@dataclass(frozen=True, slots=True)
class Characters:
    """Annotation of a text: 1 to `limit` characters of a class, as a regular expression spells it. The schema
    shows both as one pattern.

    pydantic's engine writes out a count of letters of all scripts: `[\\w-]{1,64}` alone took 7 MiB.
    """

    allowed: str
    limit: int

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.str_schema(pattern=f"^{self.allowed}+$", max_length=self.limit)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        shown = handler(schema)
        del shown["maxLength"]
        return {**shown, "pattern": f"^{self.allowed}{{1,{self.limit}}}$"}


def _unix_ms(text: Any) -> int:
    if not isinstance(text, str):
        raise InvalidValue("must be a time as text, as 2026-11-21T09:30:00Z")
    return from_rfc3339(text)


#: A time, RFC 3339 in JSON and Unix milliseconds internally, from 1970 to 2099.
MomentMs = Annotated[
    int,
    BeforeValidator(_unix_ms),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": [examples.TIME]}),
]

#: A time in a response, RFC 3339 in UTC with milliseconds.
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"}, examples=[examples.TIME])]

CreatedAt = Annotated[Time, Field(description="Time of creation.", examples=[examples.EARLIER])]
UpdatedAt = Annotated[
    Time, Field(description="Time of the last change; that of creation if there was none.")
]

#: A URL in a response.
Url = Annotated[str, Field(json_schema_extra={"format": "uri"})]

SubscriberId = Annotated[
    str,
    Field(description="A person on one channel of the project.", examples=[examples.SUBSCRIBER_ID]),
]
OnChannel = Annotated[
    str,
    Field(
        description="Messenger, by its channel's name in `GET /v1/project`.",
        examples=[examples.CHANNEL],
    ),
]

#: The two ways to name a person in a body, and what narrows them.
NamedById = Annotated[
    str | None,
    Field(
        description="The person, on one channel. Exactly one of this and `external_id`.",
        examples=[examples.SUBSCRIBER_ID],
    ),
]
NamedByExternalId = Annotated[
    str | None,
    Field(
        description="The person, by your own id of them. Of several subscribers with it, the active one that"
        " was seen last is chosen.",
        examples=[examples.EXTERNAL_ID],
    ),
]
NamedOnChannel = Annotated[
    str | None,
    Field(
        description="With `external_id`, the channel to choose; without it, the one that the person has to"
        " be on.",
        examples=[examples.CHANNEL],
    ),
]


def _refuse_null(value: Any) -> Any:
    if value is None:
        raise InvalidValue("must not be null; leave it out to keep what there is")
    return value


@dataclass(frozen=True)
class _NotNull:
    """Excludes null from a type, both in validation and in its schema."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler(source)
        assert schema["type"] == "nullable", "it is for a type or None"
        return core_schema.no_info_before_validator_function(_refuse_null, schema["schema"])


#: For updates: a field that may be omitted, which keeps the current value, and can't be null. None if it was
#: omitted.
Kept = Annotated[T | None, _NotNull()]


def _is_true(value: Any) -> Any:
    if value is not True:
        raise InvalidValue("must be true, or left out")
    return value


#: `true`, or omitted: for a literal pydantic would accept 1 and 1.0.
OnlyTrue = Annotated[
    bool, BeforeValidator(_is_true), WithJsonSchema({"const": True, "type": "boolean"})
]
