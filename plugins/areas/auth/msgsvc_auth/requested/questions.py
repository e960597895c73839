"""Questions that other plugins ask one subscriber, in their messenger."""

from dataclasses import replace

from msgsvc_auth.requested.question_limits import QuestionLimits
from msgsvc_auth.requested.requesters import Requester
from msgsvc_auth.requested.sending import QuestionSender
from msgsvc_auth.service import SignIn
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, SubscriberNotFound, ValidationFailed
from msgsvc_core.plugins.sign_ins import AskedSignIn, DirectSignIn
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers


class DirectQuestions:
    """Asks a subscriber; only they can answer."""

    def __init__(
        self,
        *,
        subscribers: Subscribers,
        sign_in: SignIn,
        limits: QuestionLimits,
        sender: QuestionSender,
    ) -> None:
        self._subscribers = subscribers
        self._sign_in = sign_in
        self._limits = limits
        self._sender = sender

    async def ask(self, tx: Tx, request: DirectSignIn) -> AskedSignIn:
        """Opens a session and has the question sent after the commit.

        Raises `SubscriberNotFound`, `Conflict` for a person who has left or blocked the bot, and where the
        bot is gone or nobody can answer it, `RateLimitProject` for too many questions to the same person,
        and `ValidationFailed` for what can't be shown.
        """
        requester = Requester.of(request.requester_name, request.requester_url)
        if request.lifetime_s is not None and request.lifetime_s < 1:
            raise ValidationFailed("must be at least {limit}", field="lifetime_s", limit=1)
        subscriber = await self._lock(tx, request.project_id, request.subscriber_id)
        if subscriber.status != "active":
            raise Conflict(
                "{subscriber_id} is {status}, and can't be asked",
                subscriber_id=subscriber.subscriber_id,
                status=subscriber.status,
            )
        await self._limits.count(tx, request.project_id, subscriber.subscriber_id)
        new = await self._sign_in.open_direct(tx, replace(request, requester_name=requester.name))
        await self._sender.send(tx, new, request, subscriber)
        session = new.session
        return AskedSignIn(
            session_id=session.session_id,
            match_number=session.match_number,
            expires_at_ms=session.expires_at_ms,
        )

    async def _lock(self, tx: Tx, project_id: str, subscriber_id: str) -> Subscriber:
        # Before the session is written: an erasure holds the person, and then waits for their sign-ins.
        if not await self._subscribers.lock_existing(tx, [(project_id, subscriber_id)]):
            raise SubscriberNotFound(
                "there is no subscriber {subscriber_id!r}", subscriber_id=subscriber_id
            )
        return await self._subscribers.get(tx, project_id, subscriber_id)
