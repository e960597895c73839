"""The request context passed to handlers."""

from collections.abc import Mapping
from typing import Protocol

from msgsvc_core.db import Tx, WriteBatch
from msgsvc_core.kernel.errors import Unauthorized
from msgsvc_core.kernel.values import value_object


class Caller(Protocol):
    """The project whose API key a request carries."""

    @property
    def project_id(self) -> str: ...


class CallerKey(Protocol):
    """The API key of a request."""

    @property
    def key_id(self) -> str: ...

    @property
    def project_id(self) -> str: ...

    @property
    def name(self) -> str: ...


@value_object
class Context:
    """One request. `tx` is its transaction (writing requests) or a reading connection.

    `client_ip` is who connected, or who a proxy of `server.trusted_proxies` says did; empty when the
    server doesn't say. `headers` can be asked for in any case.
    An endpoint declared with `holds_connection=False` has no `tx`, and opens its own when it needs one;
    a `group_commit` one has a `unit` instead, and only adds to it. One that `batched_transaction` asks for
    `optional_tx`.
    """

    request_id: str
    client_ip: str
    headers: Mapping[str, str]
    #: None for an endpoint that is public.
    caller: Caller | None = None
    #: The request's own transaction, in which the answer to an Idempotency-Key is kept as well. None without
    #: such a key: the change may then be made together with those of other requests.
    optional_tx: Tx | None = None
    #: What an endpoint with `group_commit` adds to.
    write_batch: WriteBatch | None = None

    @property
    def tx(self) -> Tx:
        assert self.optional_tx is not None, (
            "the endpoint is declared with holds_connection=False or group_commit"
        )
        return self.optional_tx

    @property
    def unit(self) -> WriteBatch:
        assert self.write_batch is not None, "the endpoint is not declared with group_commit"
        return self.write_batch

    @property
    def project(self) -> Caller:
        if self.caller is None:
            raise Unauthorized
        return self.caller

    @property
    def project_id(self) -> str:
        return self.project.project_id
