"""A plugin whose sign-ins end as a test says."""

from dataclasses import dataclass, replace
from typing import Self

from msgsvc_core.channels import Identity
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.kernel.ids import new_secret_id, new_token
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.plugins.sign_ins import (
    AskedSignIn,
    DirectSignIn,
    PageSignIn,
    SignedIn,
    SignInMethod,
    SignInStatus,
)
from msgsvc_core.subscribers.models import Subscriber

#: Milliseconds for which a question waits, and then for which a code can be exchanged.
WAITS_MS = 600_000


@dataclass(frozen=True, slots=True)
class StartedSignIn:
    """A sign-in, with what it was started by."""

    session_id: str
    request: PageSignIn | DirectSignIn
    ends_at_ms: int
    status: SignInStatus = "pending"
    match_number: int | None = None
    code: str | None = None
    person: SignedIn | None = None


class ScriptedSignIns:
    """A plugin that signs people in. `started` contains the sign-ins by their id; `confirm` and `deny` are
    the person's answer."""

    #: Where the pages are.
    base_url = "https://msgsvc.example"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.started: dict[str, StartedSignIn] = {}

    @hookimpl
    def register_sign_ins(self) -> Self:
        return self

    @property
    def latest(self) -> StartedSignIn:
        """The sign-in that was started last."""
        return list(self.started.values())[-1]

    def confirm(
        self,
        session_id: str,
        subscriber: Subscriber,
        method: SignInMethod,
        proves: Identity = "account",
    ) -> str:
        """The person says Yes; returns the code for the browser."""
        started, now_ms = self.started[session_id], self._clock.now_ms()
        person = SignedIn(
            session_id=session_id,
            source=started.request.source,
            source_id=started.request.source_id,
            subscriber=subscriber,
            method=method,
            proves=proves,
            confirmed_at_ms=now_ms,
        )
        code = new_token()
        self.started[session_id] = replace(
            started, status="confirmed", code=code, person=person, ends_at_ms=now_ms + WAITS_MS
        )
        return code

    def deny(self, session_id: str) -> None:
        """The person presses Cancel."""
        self.started[session_id] = replace(self.started[session_id], status="denied")

    async def open_page(self, tx: Tx, request: PageSignIn) -> str:
        return f"{self.base_url}/login/{self._start(request, None)}"

    async def ask(self, tx: Tx, request: DirectSignIn) -> AskedSignIn:
        number = 42 if request.number_matching else None
        session_id = self._start(request, number)
        return AskedSignIn(
            session_id=session_id,
            match_number=number,
            expires_at_ms=self.started[session_id].ends_at_ms,
        )

    async def status(self, tx: Tx, project_id: str, session_id: str) -> SignInStatus:
        started = self.started.get(session_id)
        if started is None or started.request.project_id != project_id:
            raise NotFound("there is no sign-in {session_id!r}", session_id=session_id)
        return self._status(started)

    async def exchange(self, tx: Tx, project_id: str, code: str) -> SignedIn | None:
        for started in self.started.values():
            if started.code == code and isinstance(started.request, PageSignIn):
                return self._consume(project_id, started)
        return None

    async def take(self, tx: Tx, project_id: str, session_id: str) -> SignedIn | None:
        started = self.started.get(session_id)
        if started is None or not isinstance(started.request, DirectSignIn):
            return None
        return self._consume(project_id, started)

    def _start(self, request: PageSignIn | DirectSignIn, number: int | None) -> str:
        session_id, waits_ms = new_secret_id("ses"), WAITS_MS
        if isinstance(request, DirectSignIn) and request.lifetime_s is not None:
            waits_ms = min(request.lifetime_s * 1000, WAITS_MS)
        self.started[session_id] = StartedSignIn(
            session_id, request, self._clock.now_ms() + waits_ms, match_number=number
        )
        return session_id

    def _status(self, started: StartedSignIn) -> SignInStatus:
        waits = started.status in {"pending", "confirmed"}
        return "expired" if waits and self._clock.now_ms() >= started.ends_at_ms else started.status

    def _consume(self, project_id: str, started: StartedSignIn) -> SignedIn | None:
        if started.request.project_id != project_id or self._status(started) != "confirmed":
            return None
        self.started[started.session_id] = replace(started, status="consumed")
        return started.person
