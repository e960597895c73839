"""Exchanges codes for the users who signed in, those of concurrent requests in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgsvc_auth import store
from msgsvc_auth.errors import AuthCodeExpired, AuthCodeInvalid, AuthCodeUsed
from msgsvc_auth.metrics import SignInMetrics
from msgsvc_auth.models import CodeKind, Session
from msgsvc_core.channels import Identity
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers

#: Project and hash of a code.
Key = tuple[str, str]

#: Who signed in, and how; or why the code is refused.
Outcome = tuple[Session, Subscriber] | Exception


@dataclass(frozen=True, slots=True)
class Presented:
    """A code presented for exchange: its hash under each secret key. Its sign-in has to have proven one of
    `must_prove`; empty for anything."""

    project_id: str
    hashes: Sequence[str]
    must_prove: Sequence[Identity] = ()

    @property
    def keys(self) -> list[Key]:
        return [(self.project_id, code_hash) for code_hash in self.hashes]


class CodeExchange:
    """One UPDATE consumes the codes of all requests; the others get the reason of their rejection.

    A code of another kind than `kind` is none.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        subscribers: Subscribers,
        metrics: SignInMetrics,
        kind: CodeKind = "site",
    ) -> None:
        self._kind = kind
        self._clock = clock
        self._subscribers = subscribers
        self._metrics = metrics

    async def exchange(self, tx: Tx, presented: Sequence[Presented]) -> list[Outcome]:
        """Answers each in turn. Of several with the same code, the first has it.

        A code that proves too little is not consumed: it is still good where less is asked for.
        """
        too_little = await self._find_too_little(tx, presented)
        others = [one for number, one in enumerate(presented) if number not in too_little]
        outcomes = iter(await self._exchange(tx, others) if others else ())
        return [
            _proves_less(one) if number in too_little else next(outcomes)
            for number, one in enumerate(presented)
        ]

    async def _find_too_little(self, tx: Tx, presented: Sequence[Presented]) -> set[int]:
        """Which of them, by their numbers, are codes of sign-ins that proved too little. What was proven does
        not change once there is a code."""
        keys = sorted({key for one in presented if one.must_prove for key in one.keys})
        if not keys:
            return set()
        known = await store.find_sessions_by_code(tx, keys, self._kind)
        return {
            number
            for number, one in enumerate(presented)
            if one.must_prove
            and (session := _find(known, one)) is not None
            and session.proves not in one.must_prove
        }

    async def _exchange(self, tx: Tx, presented: Sequence[Presented]) -> list[Outcome]:
        # In one order, so that two processes don't wait for each other's rows.
        keys = sorted({key for one in presented for key in one.keys})
        consumed = await store.consume(tx, keys, self._kind, now_ms=self._clock.now_ms())
        winners = [_take(consumed, one) for one in presented]
        lost = [
            key
            for one, session in zip(presented, winners, strict=True)
            for key in one.keys
            if session is None
        ]
        known = await store.find_sessions_by_code(tx, lost, self._kind) if lost else {}
        people = await self._subscribers.get_many(
            tx, [_subscriber_of(session) for session in winners if session is not None]
        )
        for person in people.values():
            self._metrics.count_on_commit(tx, "exchanged", person.bot)
        return [
            # A session goes with its subscriber, so whose session is there is there as well.
            _refusal(known, one) if session is None else (session, people[_subscriber_of(session)])
            for one, session in zip(presented, winners, strict=True)
        ]

    async def take(
        self, tx: Tx, project_id: str, session_id: str
    ) -> tuple[Session, Subscriber] | None:
        """The person who said Yes to a plugin's question. None unless it was confirmed in time and not taken
        before."""
        session = await store.take(tx, project_id, session_id, now_ms=self._clock.now_ms())
        if session is None:
            return None
        subscriber = await self._subscribers.get(tx, *_subscriber_of(session))
        self._metrics.count_on_commit(tx, "exchanged", subscriber.bot)
        return session, subscriber


def _take(consumed: dict[Key, Session], one: Presented) -> Session | None:
    """The session of the code, removed so that a duplicate in the same batch is refused."""
    return next((consumed.pop(key) for key in one.keys if key in consumed), None)


def _subscriber_of(session: Session) -> tuple[str, str]:
    assert session.subscriber_id is not None
    return (session.project_id, session.subscriber_id)


def _find(known: Mapping[Key, Session], one: Presented) -> Session | None:
    return next((known[key] for key in one.keys if key in known), None)


def _proves_less(one: Presented) -> ApiError:
    return AuthCodeInvalid(
        "of a sign-in that did not prove {choices}",
        field="code",
        choices=" or ".join(one.must_prove),
    )


def _refusal(known: Mapping[Key, Session], one: Presented) -> ApiError:
    session = _find(known, one)
    if session is None:
        return AuthCodeInvalid("not one that this project was given", field="code")
    if session.stored_status == "consumed":
        return AuthCodeUsed("exchanged before; a code works once", field="code")
    return AuthCodeExpired("not exchanged in time; the person has to sign in again", field="code")
