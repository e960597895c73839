"""One-time codes: one active code per subscriber and purpose, with a limited number of attempts, used
once."""

from collections.abc import Sequence

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.billing import BillingGate, Charge
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.kernel.clock import MINUTE_MS, Clock
from msgsvc_core.kernel.errors import (
    ApiError,
    Conflict,
    MutuallyExclusiveIdentifiers,
    NotFound,
    SubscriberNotFound,
    ValidationFailed,
)
from msgsvc_core.kernel.ids import new_id, new_token
from msgsvc_core.security import digest
from msgsvc_core.subscribers.contacts import VerifiedContacts
from msgsvc_core.subscribers.models import Subscriber, SubscriberFilters
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_otp import limits, store
from msgsvc_otp.by_route import CodeRoutes
from msgsvc_otp.codes import CodeHashes, new_code
from msgsvc_otp.errors import OtpExpired, OtpInvalid, OtpMaxAttempts
from msgsvc_otp.events import FAILED_ATTEMPT, MAX_ATTEMPTS_REACHED, VERIFIED
from msgsvc_otp.models import (
    DEFAULT_PURPOSE,
    OneTimeCode,
    RequestOtpBody,
    SendOtpBody,
    Terms,
    Verdict,
    VerifyOtpBody,
)
from msgsvc_otp.settings import OtpSettings

#: What is charged for (hook `charge`).
OPERATION = "otp.send"

#: Subscribers with one `external_id`: one on each channel. More channels than this, nobody has.
MOST_CHANNELS = 100


class OneTimeCodes:
    """Sends and verifies codes. On a channel of addresses, the right code verifies the address."""

    def __init__(
        self,
        *,
        clock: Clock,
        settings: OtpSettings,
        hashes: CodeHashes,
        by_route: CodeRoutes,
        subscribers: Subscribers,
        contacts: VerifiedContacts,
        billing: BillingGate,
        events: Events,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._hashes = hashes
        self._by_route = by_route
        self._sender = by_route.sender
        self._subscribers = subscribers
        self._contacts = contacts
        self._billing = billing
        self._events = events

    async def send(self, tx: Tx, project_id: str, body: SendOtpBody) -> OneTimeCode:
        """Creates and sends a code, which replaces an active one for the same purpose.

        Raises `ValidationFailed`, the errors of an unknown subscriber, `Conflict` for an unsubscribed one,
        `TooEarly`, `OtpRateLimited`, `BillingBlocked`. By a route also `NotFound` for an unknown one, and
        `Conflict` if none of its steps reaches the person now.
        """
        request = self._new(project_id, body, channel=body.channel)
        if body.route_id is not None:
            return await self._send_by_route(tx, request, body)
        subscriber_id = await self._recipient(tx, project_id, body)
        # Before anything is written: an erasure holds the person, and then waits for their codes.
        if not await self._subscribers.lock_existing(tx, [(project_id, subscriber_id)]):
            raise SubscriberNotFound(
                "there is no subscriber {subscriber_id!r}", subscriber_id=subscriber_id
            )
        subscriber = await self._subscribers.get(tx, project_id, subscriber_id)
        if not self._subscribers.takes_codes(subscriber):
            raise Conflict(
                "{subscriber_id} is {status}, and can't be sent a code; POST"
                " /v1/otp/request makes a link that subscribes",
                subscriber_id=subscriber.subscriber_id,
                status=subscriber.status,
            )
        await limits.lock(tx, project_id, subscriber.subscriber_id)
        await store.insert(tx, request)
        return await self.issue(tx, request, subscriber)

    async def send_again(self, tx: Tx, code: OneTimeCode) -> OneTimeCode:
        """Sends another code on the terms of one that was sent, and by its route if there still is one.
        Raises what `send` does."""
        terms = code.terms()
        if code.route_id is not None:
            try:
                by_route = SendOtpBody.model_validate({**terms, "route_id": code.route_id})
                return await self.send(tx, code.project_id, by_route)
            except NotFound:
                pass
        return await self.send(tx, code.project_id, SendOtpBody.model_validate(terms))

    async def _send_by_route(self, tx: Tx, request: OneTimeCode, body: SendOtpBody) -> OneTimeCode:
        plan = await self._by_route.plan(tx, request, body)
        await store.insert(tx, plan.request)
        first = plan.candidates[0].recipient.subscriber_id
        code = new_code(request.length)
        sealed = self._by_route.seal(request.otp_id, code)
        issued = await self._issue(tx, plan.request, first, plan.people, code, sealed)
        return await self._by_route.start(tx, issued, plan, code)

    async def _recipient(self, tx: Tx, project_id: str, body: SendOtpBody) -> str:
        """The id of the subscriber who is meant; one with an unknown address is added."""
        if body.address is None:
            recipient = await self._subscribers.get_recipient(
                project_id,
                subscriber_id=body.subscriber_id,
                external_id=body.external_id,
                channel=body.channel,
                tx=tx,
            )
            return recipient.subscriber_id
        if body.subscriber_id is not None or body.external_id is not None:
            raise MutuallyExclusiveIdentifiers(
                "give one of them, not several", field="address, subscriber_id, external_id"
            )
        if body.channel is None:
            raise ValidationFailed("say on which the address is", field="channel")
        subscriber, _ = await self._subscribers.register(
            tx, project_id, body.channel, body.address, source="otp", lang=body.lang
        )
        return subscriber.subscriber_id

    async def request(
        self, tx: Tx, project_id: str, body: RequestOtpBody
    ) -> tuple[OneTimeCode, str]:
        """A request that waits until its link is opened, and the link's token.

        Raises `ValidationFailed`, `BillingBlocked`. It is charged when its code is created.
        """
        await self._billing.check(project_id, OPERATION, tx)
        request = self._new(project_id, body, channel=body.channel)
        # Template errors are reported now: the person who opens the link could not fix them.
        await self._sender.check(tx, request, new_code(request.length))
        token = new_token()
        await store.insert(tx, request, digest(token))
        return request, token

    async def page(self, tx: Tx, project_id: str, query: PageQuery) -> list[OneTimeCode]:
        """Newest first; one more than `query.limit` where there is, so that the caller sees it."""
        return await store.list_page(tx, project_id, query.after, query.fetch_limit)

    async def get(self, tx: Tx, project_id: str, otp_id: str) -> OneTimeCode:
        """Raises `NotFound`, for another project's code as well."""
        code = await store.find(tx, project_id, otp_id)
        if code is None:
            raise NotFound("there is no one-time code {otp_id!r}", otp_id=otp_id)
        return code

    async def lock_requested(self, tx: Tx, token: str) -> OneTimeCode | None:
        """Locks the request with this token, whatever its state. A concurrent opening of the link waits
        until the transaction ends."""
        return await store.lock_by_token(tx, digest(token))

    async def issue(self, tx: Tx, request: OneTimeCode, subscriber: Subscriber) -> OneTimeCode:
        """Makes the code of a request that waits, and has it sent.

        Raises `ValidationFailed`, `Conflict`, `TooEarly`, `OtpRateLimited`, `BillingBlocked`.
        """
        subscriber_id, code = subscriber.subscriber_id, new_code(request.length)
        await limits.lock(tx, request.project_id, subscriber_id)
        issued = await self._issue(tx, request, subscriber_id, [subscriber_id], code)
        await self._sender.send(tx, issued, subscriber, code)
        return issued

    async def _issue(
        self,
        tx: Tx,
        request: OneTimeCode,
        subscriber_id: str,
        people: Sequence[str],
        code: str,
        sealed: str | None = None,
    ) -> OneTimeCode:
        """The request with its code, which counts for the subscribers `people`, whose codes are locked."""
        project_id, now_ms = request.project_id, self._clock.now_ms()
        await limits.check_send(tx, self._settings, request, people, now_ms=now_ms)
        await store.supersede(tx, project_id, people, request.purpose, now_ms=now_ms)
        issued = await store.issue(
            tx,
            request,
            subscriber_id=subscriber_id,
            code_hash=self._hashes.hash(request.otp_id, code),
            now_ms=now_ms,
            expires_at_ms=now_ms + request.ttl_minutes * MINUTE_MS,
            sealed=sealed,
        )
        assert issued is not None, "whoever issues it has made or holds the request"
        await self._billing.charge(tx, Charge(project_id, OPERATION, request.otp_id))
        return issued

    async def verify(self, tx: Tx, project_id: str, body: VerifyOtpBody) -> Verdict | OtpInvalid:
        """Counts an attempt, then compares.

        A wrong code is returned and not raised: the caller has to commit the attempt with `tx`. Raises
        `OtpInvalid`, `OtpExpired`, `OtpMaxAttempts` and `OtpRateLimited` where nothing was counted,
        `ValidationFailed` without a code, and the errors of an unknown code or subscriber.
        """
        given = body.code.replace(" ", "")
        if not given:
            # A form that was sent in empty is no guess.
            raise ValidationFailed("must hold more than spaces", field="code")
        known = await self._named(tx, project_id, body)
        now_ms = self._clock.now_ms()
        if known is None or known.subscriber_id is None:
            raise await self._why_refused(tx, known, now_ms)
        counted = await store.count_attempt(tx, known, now_ms=now_ms)
        if counted is None:
            raise await self._why_refused(tx, known, now_ms)
        people = await store.list_people(tx, counted)
        await limits.check_guess(tx, self._settings, counted, people, now_ms=now_ms)
        assert counted.subscriber_id is not None
        subscriber = await self._subscribers.get(tx, project_id, counted.subscriber_id)
        assert counted.code_hash is not None
        if not self._hashes.match(counted.otp_id, given, counted.code_hash):
            return await self._count_wrong(tx, counted, subscriber)
        consumed = await store.consume(tx, counted)
        if consumed is None:
            raise await self._why_refused(tx, counted, now_ms)
        verdict = await self.verdict(tx, consumed, subscriber)
        if verdict.proves is not None:
            await self._contacts.record_address(tx, subscriber)
        await self._emit(tx, VERIFIED, consumed, subscriber)
        return verdict

    async def verdict(self, tx: Tx, code: OneTimeCode, subscriber: Subscriber) -> Verdict:
        """What a right code says of its subscriber."""
        # By a route it may have been read on another channel than that of the last step.
        if code.route_id is not None and await store.list_reached(tx, code) != [code.subscriber_id]:
            return Verdict(code, subscriber)
        return Verdict(code, subscriber, self._sender.proves(subscriber))

    async def _count_wrong(self, tx: Tx, code: OneTimeCode, subscriber: Subscriber) -> OtpInvalid:
        await self._emit(tx, FAILED_ATTEMPT, code, subscriber)
        exhausted = await store.exhaust(tx, code)
        if exhausted is not None:
            await self._emit(tx, MAX_ATTEMPTS_REACHED, exhausted, subscriber)
            return OtpInvalid("wrong, and it was the last attempt; send another", field="code")
        left = code.attempts_left
        if left == 1:
            return OtpInvalid("wrong; {count} attempt left", field="code", count=left)
        return OtpInvalid("wrong; {count} attempts left", field="code", count=left)

    async def _named(self, tx: Tx, project_id: str, body: VerifyOtpBody) -> OneTimeCode | None:
        """The code that is meant, under the lock of its person; None if there has been none."""
        names = [body.otp_id, body.subscriber_id, body.external_id]
        if len(names) - names.count(None) > 1:
            raise MutuallyExclusiveIdentifiers(
                "give one of them, not several", field="otp_id, subscriber_id, external_id"
            )
        if body.otp_id is not None:
            code = await self.get(tx, project_id, body.otp_id)
            if body.purpose not in {None, code.purpose}:
                raise OtpInvalid(
                    "this code is for {purpose}", field="purpose", purpose=code.purpose
                )
            await self._lock(tx, code)
            return code
        if names.count(None) == len(names):
            raise ValidationFailed("give it, or subscriber_id, or external_id", field="otp_id")
        purpose = body.purpose or DEFAULT_PURPOSE
        people = await self._people(tx, project_id, body)
        last = await store.find_last(tx, project_id, people, purpose)
        if last is None:
            return None
        locked = await self._lock(tx, last)
        # Another may have been sent until the lock was ours.
        return await store.find_last(tx, project_id, locked, purpose)

    async def _people(self, tx: Tx, project_id: str, body: VerifyOtpBody) -> Sequence[str]:
        """The subscribers of the request: with an `external_id` those of all channels, because the code may
        have been sent to another one than the most recently active."""
        recipient = await self._subscribers.get_recipient(
            project_id,
            subscriber_id=body.subscriber_id,
            external_id=body.external_id,
            channel=body.channel,
            tx=tx,
        )
        if body.external_id is None or body.channel is not None:
            return [recipient.subscriber_id]
        filters = SubscriberFilters(external_id=body.external_id)
        everywhere = await self._subscribers.list_after(
            tx, project_id, filters, None, MOST_CHANNELS
        )
        return [subscriber.subscriber_id for subscriber in everywhere]

    async def _why_refused(self, tx: Tx, code: OneTimeCode | None, now_ms: int) -> ApiError:
        if code is None:
            return OtpInvalid("none was sent to this subscriber for this purpose", field="code")
        # Read again: it may have changed since it was found.
        code = await self.get(tx, code.project_id, code.otp_id)
        match code.status(now_ms):
            case "expired":
                return OtpExpired("not given in time; send another", field="code")
            case "max_attempts_reached":
                return OtpMaxAttempts("no attempts are left; send another", field="code")
            case "verified":
                return OtpInvalid("used before; a code works once", field="code")
            case "superseded":
                return OtpInvalid("a newer one has taken its place", field="code")
            case _:
                return OtpInvalid("none was sent yet; nobody has opened the link", field="code")

    def _new(self, project_id: str, terms: Terms, *, channel: str | None) -> OneTimeCode:
        """Raises `ValidationFailed` for terms beyond the settings."""
        allowed = self._settings
        now_ms = self._clock.now_ms()
        return OneTimeCode(
            project_id=project_id,
            otp_id=new_id("otp"),
            stored_status="waiting",
            purpose=terms.purpose,
            subscriber_id=None,
            channel=channel,
            lang=terms.lang,
            length=_within(
                "length",
                terms.length or allowed.length,
                allowed.least_length,
                allowed.most_length,
            ),
            ttl_minutes=_within(
                "ttl_minutes", terms.ttl_minutes or allowed.ttl_minutes, 1, allowed.most_ttl_minutes
            ),
            max_attempts=_within(
                "max_attempts",
                terms.max_attempts or allowed.max_attempts,
                1,
                allowed.most_max_attempts,
            ),
            attempts=0,
            created_at_ms=now_ms,
            issued_at_ms=None,
            expires_at_ms=now_ms + allowed.link_lifetime_s * 1000,
        )

    async def _lock(self, tx: Tx, code: OneTimeCode) -> Sequence[str]:
        """Locks the codes of the person whose code it is; returns their subscribers."""
        people = await store.list_people(tx, code)
        await limits.lock_people(tx, self._subscribers, code.project_id, people)
        return people

    async def _emit(self, tx: Tx, event: str, code: OneTimeCode, subscriber: Subscriber) -> None:
        await emit(self._events, tx, event, code, subscriber)


async def emit(
    events: Events, tx: Tx, event: str, code: OneTimeCode, subscriber: Subscriber
) -> None:
    """Emits one of the plugin's events for a code."""
    fields = {
        "otp_id": code.otp_id,
        "purpose": code.purpose,
        "attempts_left": code.attempts_left,
    }
    await events.emit(tx, code.project_id, event, fields, subscriber=subscriber)


def _within(name: str, value: int, least: int, limit: int) -> int:
    if not least <= value <= limit:
        raise ValidationFailed("must be {minimum}-{limit}", field=name, minimum=least, limit=limit)
    return value
