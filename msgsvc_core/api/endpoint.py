"""Endpoints, whose types validate requests, serialise responses and document both.

    router = Router(area="messages")

    @router.post("/v1/send", status=202, errors=(SubscriberNotFound,))
    async def send(ctx: Context, body: SendBody) -> QueuedMessageAnswer:
        '''Queues a message to one subscriber.'''

A handler's `body` and `query` are pydantic models. `upload` is the file of a multipart/form-data request, and
`parts`, a `Query`, the model of its other parts. Arguments with the name of a path parameter are that
parameter, as text; the document takes description and example from an annotation, the one of the models'
fields of that name:

    MessageId = Annotated[str, Field(description="The message.", examples=["msg_032aJamqr6fEXIaCqDv5me"])]

    @router.get("/v1/messages/{message_id}")
    async def get_message(ctx: Context, message_id: MessageId) -> MessageAnswer:

Any other argument is an object of the service, by its type: `messages: Messages`; a type that nothing
provides is an error at start. The return type is a model, or `Response` for a response other than JSON.

GET handlers read; others write, in one transaction that commits if the handler returns. A handler that only
adds rows is declared `group_commit`: it fills `ctx.write_batch`, which is committed together with those of
other requests. One whose change is a single statement is declared `batched_transaction`, and passes it to a
`TransactionBatcher`.

The OpenAPI document shows an example of each body, query parameter and response: that of the model
(`json_schema_extra={"examples": [...]}` of its `model_config`), else one composed of the examples of its
fields, `Field(description=..., examples=[...])`. A composed one leaves out optional fields of a body that
have none.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic_core import CoreSchema
from starlette.responses import Response

from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.kernel.i18n import Title
from msgsvc_core.kernel.providers import Providers, takes

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
HandlerFunction = Callable[..., Awaitable[Any]]
F = TypeVar("F", bound=HandlerFunction)

_PATH_PARAMETER = re.compile(r"{(\w+)}")


class RequestModel(BaseModel):
    """Base of request bodies: unknown fields are rejected, and types are not converted.

    JSON has one kind of number, so `60.0` is accepted as the integer 60 (JSON Schema 2020-12, section 6.1.1).
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    #: The names of integer fields that don't accept fractions.
    _integers: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **_options: Any) -> None:
        cls._integers = frozenset(
            field.alias or name
            for name, field in cls.model_fields.items()
            if int in (kinds := _kinds_of(field.annotation)) and float not in kinds
        )

    @classmethod
    def described_rules(cls) -> list[str]:
        """What JSON Schema can't say of a body: the docstrings of its validators over several fields."""
        found = cls.__pydantic_decorators__.model_validators.values()
        after = [inspect.getdoc(each.func) for each in found if each.info.mode == "after"]
        return [" ".join(rule.split()) for rule in after if rule]

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        shown = handler(schema)
        if rules := cls.described_rules():
            described = handler.resolve_ref_schema(shown)
            described["description"] = " ".join([described.get("description", ""), *rules]).strip()
        return shown

    @model_validator(mode="before")
    @classmethod
    def _whole_numbers(cls, value: Any) -> Any:
        if not cls._integers or not isinstance(value, dict):
            return value
        whole = {
            name: int(number)
            for name in cls._integers
            if isinstance(number := value.get(name), float) and number.is_integer()
        }
        return {**value, **whole} if whole else value


def _kinds_of(annotation: Any) -> set[Any]:
    """The members of a union type."""
    kinds = {annotation}
    for each in get_args(annotation) if get_origin(annotation) in _UNIONS else ():
        kinds |= _kinds_of(each)
    return kinds


_UNIONS = (Union, UnionType, Annotated)


class Query(BaseModel):
    """Base of query strings: unknown names are rejected; values arrive as text and are converted."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ResponseModel(BaseModel):
    """Base of responses. Fields named in `leave_out_none` are absent instead of null.

    That is so in a response itself. In a model that is part of another, the field has `exclude_if` instead.
    """

    model_config = ConfigDict(extra="forbid")
    leave_out_none: ClassVar[frozenset[str]] = frozenset()

    def to_json(self) -> bytes:
        return self.model_dump_json(exclude=self._absent()).encode()

    def to_data(self) -> dict[str, Any]:
        """The model as JSON values."""
        # As `model_dump(mode="json")`, which also prepares a dozen options.
        data: dict[str, Any] = self.__pydantic_serializer__.to_python(self, mode="json")
        for name in self.leave_out_none:
            if data[name] is None:
                del data[name]
        return data

    def _absent(self) -> set[str] | None:
        return {name for name in self.leave_out_none if getattr(self, name) is None} or None


async def _unbound(*_arguments: Any, **_named: Any) -> Any:
    raise AssertionError("an endpoint is called once it is bound")


#: Groups of areas, as those of the dashboard's navigation.
AreaGroup = Literal["people", "sending", "sign_in", "intake", "developers", "project", "other"]

#: What a key is made for if its scopes are not chosen one by one: a server that sends messages, or a site
#: whose users sign in.
KeyPurpose = Literal["send", "sign_in"]


@dataclass(frozen=True)
class Endpoint:
    """One method on one path."""

    method: Method
    path: str
    handler: HandlerFunction
    area: str
    #: What the area is about, in a sentence, for the documentation.
    area_description: str = ""
    #: The group of areas among which people find it.
    area_group: AreaGroup = "other"
    #: The purpose of a key that has the area among its scopes; None if the area has to be chosen by name.
    key_purpose: KeyPurpose | None = None
    status: int = 200
    errors: tuple[type[ApiError], ...] = ()
    public: bool = False
    holds_connection: bool = True
    group_commit: bool = False
    batched_transaction: bool = False
    #: Whether a response stored for an idempotency key is encrypted; False only if it contains no secrets.
    shows_secrets: bool = True
    #: What the audit log calls such a call, with the owner's texts; None if it is not recorded. Changes of
    #: the configuration are, daily traffic is not.
    audited: Title | None = None
    #: Whether the scope is reserved for owners, like dashboard pages with the access `own`: see
    #: `ALL_BUT_OWNERS`.
    owners_only: bool = False
    #: Media type of a response other than JSON, for the documentation; None if it has no body.
    media_type: str | None = None
    #: Media types, or ranges of them, that such a response may have as well, for the documentation.
    more_media_types: tuple[str, ...] = ()
    #: Error statuses that may be answered by a page of `media_type`, for the documentation.
    error_pages: tuple[int, ...] = ()
    #: Such a response, for the documentation.
    example: str | None = None
    #: What takes long and needs no transaction: it gets what the request has, before there is one, and the
    #: handler gets its result as `prepared`, with the parameters of the path.
    prepare: HandlerFunction | None = None
    #: Its place among the requests that people can try a new key with. The dashboard shows
    #: `GET /v1/project` if the key opens it, else the one with the lowest number that it opens. None for
    #: other requests.
    first_call: int | None = None
    #: The handler with its objects filled in; set by `bound`, as `call_prepare` is.
    call: HandlerFunction = _unbound
    call_prepare: HandlerFunction = _unbound

    @cached_property
    def writes(self) -> bool:
        return self.method != "GET"

    @cached_property
    def name(self) -> str:
        return self.handler.__name__

    @cached_property
    def hints(self) -> dict[str, Any]:
        before = {} if self.prepare is None else _hints_of(self.prepare)
        return {**before, **_hints_of(self.handler)}

    @cached_property
    def body(self) -> type[BaseModel] | None:
        return self.hints.get("body")

    @cached_property
    def query(self) -> type[BaseModel] | None:
        return self.hints.get("query")

    @cached_property
    def query_left_out(self) -> BaseModel | None:
        """The handler's `query` if the request has no query string; None if it is required."""
        assert self.query is not None
        with suppress(ValidationError):
            return self.query.model_validate({})
        return None

    @cached_property
    def takes_upload(self) -> bool:
        """Whether the body is a file, in multipart/form-data."""
        return "upload" in self.hints

    @cached_property
    def parts(self) -> type[BaseModel] | None:
        """The parts of a multipart/form-data body other than the file."""
        return self.hints.get("parts")

    @cached_property
    def answer(self) -> type[BaseModel] | None:
        """The model of the response; None if it is not JSON, or has no body."""
        kind = self.hints.get("return")
        return kind if inspect.isclass(kind) and issubclass(kind, BaseModel) else None

    @cached_property
    def path_parameters(self) -> list[str]:
        return _PATH_PARAMETER.findall(self.path)

    def bound(self, providers: Providers) -> "Endpoint":
        """The endpoint with its handler's objects filled in. Raises `NotProvided`."""
        given = {"ctx", "body", "query", "upload", "parts", "prepared", *self.path_parameters}
        # A copy that keeps what has been read from the types of the handler, unlike that of `replace`.
        bound = object.__new__(type(self))
        vars(bound).update(vars(self), call=providers.bind(self.handler, given))
        if self.prepare is not None:
            object.__setattr__(bound, "call_prepare", providers.bind(self.prepare, given))
        return bound

    @property
    def place(self) -> tuple[Any, ...]:
        """Sort key of the reference: by area, in which pages that people open come last."""
        return self.area, not self.path.startswith("/v1/"), self.path, self.method

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.handler) or self.name).splitlines()[0]

    @property
    def description(self) -> str:
        return inspect.getdoc(self.handler) or ""


@lru_cache(maxsize=4096)
def _hints_of(handler: HandlerFunction) -> dict[str, Any]:
    # Each service of a process has its own `Endpoint` for the same handler.
    return get_type_hints(handler)


class Router:
    """Collects the endpoints of one area. `area` is also the required API key scope; with `owners_only`,
    keys created by a non-owner are rejected. `description` says in a sentence what the area is about, in the
    plugin's texts, `group` among which others it is found, and `key_purpose` which preset of scopes, for
    a new key, includes it; of several routers of an area, one needs them."""

    def __init__(
        self,
        area: str,
        *,
        description: str = "",
        group: AreaGroup = "other",
        key_purpose: KeyPurpose | None = None,
        owners_only: bool = False,
    ) -> None:
        self.area = area
        self.key_purpose = key_purpose
        self.description = description
        self.group = group
        self.owners_only = owners_only
        self.endpoints: list[Endpoint] = []

    def add(self, method: Method, path: str, **options: Any) -> Callable[[F], F]:
        def declare(handler: F) -> F:
            self.endpoints.append(
                Endpoint(
                    method,
                    path,
                    handler,
                    self.area,
                    self.description,
                    self.group,
                    self.key_purpose,
                    owners_only=self.owners_only,
                    **options,
                )
            )
            return handler

        return declare

    def get(self, path: str, **options: Any) -> Callable[[F], F]:
        """Options: `errors`, `public` (no API key), `holds_connection`, `media_type` (of a response other
        than JSON), `more_media_types` and `error_pages` (see `Endpoint`), an `example` of it, and
        `first_call` (its place among the requests that people try a new key with)."""
        return self.add("GET", path, **options)

    def post(self, path: str, **options: Any) -> Callable[[F], F]:
        """Options: those of `get`, and `status` (200), `group_commit` (the handler fills
        `ctx.write_batch`), `batched_transaction` (it may have no transaction, see `ctx.optional_tx`),
        `shows_secrets` (True; False skips the encryption of responses stored for idempotency keys), `audited`
        (its title in the audit log: for changes of the configuration), and `prepare` (what is done before the
        transaction, see `Endpoint`)."""
        return self.add("POST", path, **options)

    def put(self, path: str, **options: Any) -> Callable[[F], F]:
        return self.add("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> Callable[[F], F]:
        return self.add("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> Callable[[F], F]:
        return self.add("DELETE", path, **options)


def check_endpoints(endpoints: Sequence[Endpoint]) -> None:
    """Raises ValueError for an invalid declaration: a duplicate path or name, or wrong arguments."""
    seen: set[tuple[str, str]] = set()
    names: set[str] = set()
    for endpoint in endpoints:
        if endpoint.name in names:
            raise ValueError(f"two handlers are named {endpoint.name!r}, their OpenAPI operation")
        names.add(endpoint.name)
        where = (endpoint.method, _PATH_PARAMETER.sub("{}", endpoint.path))
        if where in seen:
            raise ValueError(f"{endpoint.method} {endpoint.path} is declared twice")
        seen.add(where)
        if endpoint.audited and (endpoint.public or endpoint.group_commit):
            raise ValueError(f"{endpoint.name}: what is audited needs a key and a transaction")
        if not takes(endpoint.handler, "ctx"):
            raise ValueError(f"{endpoint.method} {endpoint.path}: its handler takes no `ctx`")


__all__ = [
    "Endpoint",
    "Query",
    "RequestModel",
    "Response",
    "ResponseModel",
    "Router",
    "check_endpoints",
]
