"""Runs one endpoint: key, rate, body, idempotency, transaction, handler, answer, in that order."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import structlog
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from msgsvc_core.api.body import check_is_json, read_body
from msgsvc_core.api.context import CallerKey, Context
from msgsvc_core.api.endpoint import Endpoint, Query, ResponseModel
from msgsvc_core.api.envelope import api_error, envelope
from msgsvc_core.api.json_input import is_storable, parse_json
from msgsvc_core.api.pagination import bound_cursor, unbound_cursor
from msgsvc_core.api.uploads import read_upload
from msgsvc_core.api.validation import validate
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Database, Tx, WriteBatch, retry_on_deadlock
from msgsvc_core.http.authentication import (
    Authentication,
    check_rate,
    check_scope,
    rate_headers,
)
from msgsvc_core.http.idempotency import Idempotency, StoredAnswer, check_key, fingerprints_of
from msgsvc_core.kernel.errors import (
    ApiError,
    InvalidApiKey,
    NotFound,
    Unauthorized,
    ValidationFailed,
)
from msgsvc_core.kernel.values import value_object
from msgsvc_core.projects.models import ApiKey, Project
from msgsvc_core.security import SecretBox

JSON = "application/json"

#: The headers that an API key comes in.
API_KEY_HEADERS = frozenset({b"authorization", b"x-api-key"})

#: The headers that are read here, of the many that a client may send.
_ASKED = API_KEY_HEADERS | {
    b"content-type",
    b"idempotency-key",
}


class WriteAudit(Protocol):
    """Writes an entry of the audit log: what a call of the API changed, in the name of its key."""

    async def __call__(
        self, tx: Tx, action: str, key: CallerKey, *, target: str | None, ip: str
    ) -> None: ...


class EndpointDispatcher:
    """Turns requests into calls of handlers, for all endpoints of a service."""

    def __init__(
        self,
        *,
        db: Database,
        secrets: SecretBox,
        authentication: Authentication,
        idempotency: Idempotency,
        write_audit: WriteAudit,
        settings: Settings,
    ) -> None:
        self._db = db
        self._secrets = secrets
        self._authentication = authentication
        self._idempotency = idempotency
        self._write_audit = write_audit
        self._media_settings = settings.media
        self._errors_url = settings.errors_url
        self._max_body_bytes = settings.server.max_body_bytes
        self._languages = settings.languages

    async def answer(self, endpoint: Endpoint, request: Request) -> Response:
        """The response, whatever happens: every failure is in the envelope."""
        headers: list[tuple[bytes, bytes]] = []
        try:
            response = await self._answer(endpoint, request, headers)
        except Exception as error:  # noqa: BLE001 - the edge; `api_error` logs it
            response = envelope(api_error(error), self._errors_url)
        response.raw_headers.extend(headers)
        return response

    async def refuse(self, error: ApiError, request: Request) -> Response:
        """The answer where there is no endpoint: with the project's rate headers if it has a key, whose
        requests count here as well."""
        headers: list[tuple[bytes, bytes]] = []
        if not API_KEY_HEADERS.isdisjoint(name for name, _ in request.scope["headers"]):
            try:
                project, _ = await self._admit(request, request.headers, headers)
                self._authentication.check_active(project)
            except (Unauthorized, InvalidApiKey):
                # A path that does not exist is no secret.
                pass
            except Exception as failure:  # noqa: BLE001 - the edge; `api_error` logs it
                error = api_error(failure)
        response = envelope(error, self._errors_url)
        response.raw_headers.extend(headers)
        return response

    async def _admit(
        self, request: Request, header_values: Mapping[str, str], headers: list[tuple[bytes, bytes]]
    ) -> tuple[Project, ApiKey]:
        """Whose request it is, counted; its rate headers are added to `headers`, whatever follows."""
        project, key = await self._authentication.authenticate(header_values)
        request.scope["state"]["project_id"] = project.project_id
        structlog.contextvars.bind_contextvars(project_id=project.project_id)
        window = await self._authentication.count(project)
        headers += rate_headers(window)
        check_rate(window)
        return project, key

    async def _answer(
        self, endpoint: Endpoint, request: Request, headers: list[tuple[bytes, bytes]]
    ) -> Response:
        # Our own questions go to a plain dict: a Starlette header is looked for from the first to the
        # last at every question.
        header_values = {
            name.decode("latin-1"): value.decode("latin-1")
            # The first of a name counts, as there.
            for name, value in reversed(request.scope["headers"])
            if name in _ASKED
        }
        project = api_key = None
        if not endpoint.public:
            project, api_key = await self._admit(request, header_values, headers)
            self._authentication.check_active(project)
            check_scope(
                api_key,
                endpoint.area,
                writes=endpoint.writes,
                owners_only=endpoint.owners_only,
            )
        call = _Call(endpoint, request, project, api_key)
        key = header_values.get("idempotency-key")
        if key is not None:
            key = (
                check_key(key, request.scope["headers"])
                if endpoint.method == "POST" and not endpoint.public
                else None
            )
        if endpoint.takes_upload:
            parts = endpoint.parts
            most = 0 if parts is None else len(parts.model_fields)
            async with read_upload(request, self._media_settings, most) as upload:
                arguments = {**self._arguments(endpoint, request, b""), "upload": upload}
                if parts is not None:
                    given = validate(parts, upload.parts, languages=self._languages)
                    arguments["parts"] = given
                if key is not None:
                    raw = await upload.fingerprint()
                    return await self._run_once(call, arguments, key, raw)
                return await self._run(call, arguments)
        raw = await self._read(endpoint, request)
        try:
            if endpoint.body is not None:
                check_is_json(header_values.get("content-type"))
            arguments = self._arguments(endpoint, request, raw)
        except ApiError:
            # The key may stand for another request, or for this one before an update of ours.
            if key is not None and (
                known := await self._idempotency.recall(
                    call.project_id, key, self._fingerprints(call, raw)
                )
            ):
                return _stored(known)
            raise
        if key is not None:
            return await self._run_once(call, arguments, key, raw)
        return await self._run(call, arguments)

    def _fingerprints(self, call: "_Call", raw: bytes) -> list[str]:
        path = call.request.scope["path"]
        if call.endpoint.query is not None:
            path += "?" + call.request.scope["query_string"].decode("latin-1")
        return fingerprints_of(self._secrets, call.endpoint.method, path, raw)

    async def _read(self, endpoint: Endpoint, request: Request) -> bytes:
        if not endpoint.writes:
            return b""
        raw = await read_body(request, self._max_body_bytes)
        if raw and endpoint.body is None and raw.strip() != b"{}":
            raise ValidationFailed("this endpoint takes none", field="body")
        return raw

    def _arguments(self, endpoint: Endpoint, request: Request, raw: bytes) -> dict[str, Any]:
        arguments: dict[str, Any] = dict(request.path_params)
        if any(not is_storable(value) for value in arguments.values()):
            raise NotFound("there is nothing at {path}", path=request.scope["path"])
        if endpoint.query is None:
            if request.scope["query_string"]:
                validate(_NoQuery, _query(request), "query")
        else:
            left_out = None if request.scope["query_string"] else endpoint.query_left_out
            arguments["query"] = left_out or self._read_query(endpoint, request)
        if endpoint.body is not None:
            arguments["body"] = validate(endpoint.body, parse_json(raw), languages=self._languages)
        return arguments

    def _read_query(self, endpoint: Endpoint, request: Request) -> BaseModel:
        assert endpoint.query is not None, "there is a query to read"
        values = _query(request)
        if "cursor" in values and "cursor" in endpoint.query.model_fields:
            values["cursor"] = unbound_cursor(values["cursor"], endpoint.path)
        return validate(endpoint.query, values, "query", languages=self._languages)

    async def _prepared(self, call: "_Call", arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the handler gets: what the request has, or what was prepared from that."""
        endpoint = call.endpoint
        if endpoint.prepare is None:
            return arguments
        named = {name: arguments[name] for name in endpoint.path_parameters}
        return {**named, "prepared": await endpoint.call_prepare(call.context(), **arguments)}

    async def _run(self, call: "_Call", arguments: Mapping[str, Any]) -> Response:
        endpoint = call.endpoint
        arguments = await self._prepared(call, arguments)
        if endpoint.group_commit:
            unit = WriteBatch()
            result = await endpoint.call(call.context(unit), **arguments)
            await self._db.write(unit)
            return _respond(endpoint, result)
        if not endpoint.holds_connection or endpoint.batched_transaction:
            result = await self._call(call, call.context(), arguments)
            _bind_cursor(endpoint, result)
            return _respond(endpoint, result)
        if endpoint.writes:
            result = await retry_on_deadlock(partial(self._call_in_transaction, call, arguments))
        else:
            async with self._db.read() as tx:
                result = await self._call(call, call.context(tx), arguments)
        if isinstance(result, ApiError):
            raise result
        _bind_cursor(endpoint, result)
        return _respond(endpoint, result)

    async def _call_in_transaction(self, call: "_Call", arguments: Mapping[str, Any]) -> Any:
        """What the handler returns, or an error of it that keeps its writes."""
        async with self._db.transaction() as tx:
            try:
                return await self._call(call, call.context(tx), arguments)
            except ApiError as error:
                if not error.keeps_writes:
                    raise
                return error

    async def _call(self, call: "_Call", ctx: Context, arguments: Mapping[str, Any]) -> Any:
        """The handler, and the entry of the audit log where there is to be one: in its transaction, or
        afterwards in one of its own if it holds none."""
        endpoint = call.endpoint
        if "upload" in arguments:
            # A request that a deadlock ended is tried again, and its handler reads the file once more.
            arguments["upload"].file.seek(0)
        result = await endpoint.call(ctx, **arguments)
        if endpoint.audited:
            named = [str(arguments[name]) for name in endpoint.path_parameters] or _ids_of(result)
            if ctx.optional_tx is not None:
                await self._audit(ctx.tx, call, named)
            else:
                async with self._db.transaction() as tx:
                    await self._audit(tx, call, named)
        return result

    async def _audit(self, tx: Tx, call: "_Call", named: Sequence[str]) -> None:
        assert call.key is not None, "what is audited needs a key"
        await self._write_audit(
            tx,
            f"{call.endpoint.area}.{call.endpoint.name}",
            call.key,
            target=" ".join(named) or None,
            ip=call.context().client_ip,
        )

    async def _run_once(
        self, call: "_Call", arguments: Mapping[str, Any], key: str, raw: bytes
    ) -> Response:
        endpoint = call.endpoint
        fingerprints = self._fingerprints(call, raw)
        try:
            arguments = await self._prepared(call, arguments)
        except ApiError:
            # What was answered before holds, whatever has changed since.
            if known := await self._idempotency.recall(call.project_id, key, fingerprints):
                return _stored(known)
            raise

        async def work(target: Tx | WriteBatch) -> StoredAnswer:
            result = await self._call(call, call.context(target), arguments)
            if result is None:
                return StoredAnswer(204, "")
            body = _to_json(result).decode()
            return StoredAnswer(endpoint.status, body, is_secret=endpoint.shows_secrets)

        def render(error: ApiError) -> StoredAnswer:
            body = bytes(envelope(error, self._errors_url).body).decode()
            return StoredAnswer(error.status, body)

        # What holds no connection must hold no transaction either, so only its answer is written.
        alone = endpoint.group_commit or not endpoint.holds_connection
        run = self._idempotency.run_grouped if alone else self._idempotency.run
        answer = await run(
            call.project_id,
            key,
            fingerprints,
            work,
            render,
        )
        return _stored(answer)


@value_object
class _Call:
    """A request to an endpoint, and whose it is."""

    endpoint: Endpoint
    request: Request
    project: Project | None
    key: ApiKey | None

    @property
    def project_id(self) -> str:
        assert self.project is not None, "the endpoint is not public"
        return self.project.project_id

    def context(self, target: Tx | WriteBatch | None = None) -> Context:
        """What the handler gets, which reads and writes through `target`."""
        scope = self.request.scope
        return Context(
            request_id=scope["state"]["request_id"],
            client_ip=(scope.get("client") or ("", 0))[0],
            headers=self.request.headers,
            caller=self.project,
            optional_tx=target if isinstance(target, Tx) else None,
            write_batch=target if isinstance(target, WriteBatch) else None,
        )


def _ids_of(result: Any) -> list[str]:
    """What was made, by the first of its fields that names it: `webhook_id`, `slug`, `key`, `name`."""
    fields = type(result).model_fields if isinstance(result, BaseModel) else {}
    named = [name for name in fields if name.endswith("_id") or name in {"slug", "key", "name"}]
    return [str(getattr(result, name)) for name in named[:1]]


class _JsonResponse(Response):
    """A `Response` whose two headers are known, which spares it looking for them."""

    def __init__(self, body: bytes, status: int) -> None:
        self.status_code = status
        self.background = None
        self.body = body
        self.raw_headers = [
            (b"content-length", b"%d" % len(body)),
            (b"content-type", JSON.encode()),
        ]


class _NoQuery(Query):
    """What stands behind the `?` of an endpoint that knows nothing there: a typo must not pass silently."""


def _query(request: Request) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in values:
            raise ValidationFailed("stands twice in the query", field=name)
        if not is_storable(name + value):
            raise ValidationFailed("a text holds NUL or invalid UTF-8", field="query")
        values[name] = value
    return values


def _bind_cursor(endpoint: Endpoint, result: Any) -> None:
    """Makes the cursor of a list good for this list alone, also of one inside an answer, as the messages
    of a ticket. By the path as it is declared: one resource may go by its id or its number."""
    if endpoint.writes or not isinstance(result, ResponseModel):
        return
    for part in (result, *(value for _, value in result)):
        if (
            isinstance(part, ResponseModel)
            and (cursor := getattr(part, "next_cursor", None)) is not None
        ):
            # The models of lists declare it.
            part.next_cursor = bound_cursor(cursor, endpoint.path)  # type: ignore[attr-defined]


def _stored(answer: StoredAnswer) -> Response:
    response = Response(answer.body, status_code=answer.status, media_type=JSON)
    if answer.replayed:
        response.headers["Idempotent-Replayed"] = "true"
    return response


def _respond(endpoint: Endpoint, result: Any) -> Response:
    if isinstance(result, Response):
        return result
    if result is None:
        return Response(status_code=204)
    return _JsonResponse(_to_json(result), endpoint.status)


def _to_json(result: Any) -> bytes:
    if isinstance(result, ResponseModel):
        return result.to_json()
    assert isinstance(result, BaseModel), "a handler answers with a model"
    return result.model_dump_json().encode()
