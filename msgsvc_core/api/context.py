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

    `client_ip` is the address of the client, or the one that a proxy of `server.trusted_proxies` reports;
    empty if the server doesn't report one. `headers` are case-insensitive. An endpoint declared with
    `holds_connection=False` has no `tx`, and opens one when it needs it; a `group_commit` one has a
    `write_batch` instead, and only adds to it. A `batched_transaction` one uses `optional_tx`.
    """

    request_id: str
    client_ip: str
    headers: Mapping[str, str]
    #: None for a public endpoint.
    caller: Caller | None = None
    #: The request's own transaction, in which the response to an Idempotency-Key is stored too. None without
    #: such a key: the change may then share a transaction with other requests.
    optional_tx: Tx | None = None
    #: The batch of writes of an endpoint with `group_commit`.
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
