"""The request context passed to handlers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from msgsvc_core.db import Tx, WriteBatch
from msgsvc_core.kernel.errors import Unauthorized


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


@dataclass(slots=True)
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
    _project: Caller | None = None
    _key: CallerKey | None = None
    _tx: Tx | None = None
    _unit: WriteBatch | None = None

    @property
    def tx(self) -> Tx:
        assert self._tx is not None, (
            "the endpoint is declared with holds_connection=False or grouped"
        )
        return self._tx

    @property
    def optional_tx(self) -> Tx | None:
        """The request's own transaction, in which the answer to an Idempotency-Key is kept as well.

        None without such a key: the change may then be made together with those of other requests.
        """
        return self._tx

    @property
    def unit(self) -> WriteBatch:
        assert self._unit is not None, "the endpoint is not declared with grouped"
        return self._unit

    @property
    def project(self) -> Caller:
        if self._project is None:
            raise Unauthorized
        return self._project

    @property
    def project_id(self) -> str:
        return self.project.project_id
