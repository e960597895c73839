"""The bot's question after a link of the dashboard was opened, and its answer.

The data of its buttons is `~dsh:47:<token>:<seal>`, or `n` in place of the number for Cancel: at most 53
bytes of the 64 that a button may have. The seal is a keyed hash over the choice, the token, the bot, the chat
and the user who was asked, so that only their own press counts, and only for a button that was shown.
"""

import hmac
import re
from urllib.parse import urlsplit

from msgsvc_core.channels.inbound import OWN_BUTTON, InboundContext, InboundRule
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.updates import ButtonPressed, Started
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.i18n import Translate
from msgsvc_core.kernel.ids import ID_WIDTH, encode_base62
from msgsvc_core.pages.user_agents import readable_agent
from msgsvc_core.security import SecretBox, offered
from msgsvc_dashboard.accounts import request_store as store
from msgsvc_dashboard.accounts.audit import Audit
from msgsvc_dashboard.accounts.models import LinkedMessenger, MessengerRequest
from msgsvc_dashboard.accounts.service import Accounts, digest_of

START_PREFIX = "dsh_"
BUTTON_PREFIX = "dsh:"

MINUTE_MS = 60_000

#: What the choice of the other numbers is derived for.
NUMBERS = "dashboard numbers"

_DATA = re.compile(
    rf"{OWN_BUTTON}{BUTTON_PREFIX}(n|[1-9][0-9]):([0-9A-Za-z]{{{ID_WIDTH}}}):([0-9A-Za-z]{{{ID_WIDTH}}})"
)


class Questions:
    """The rules of inbound updates."""

    def __init__(
        self,
        *,
        clock: Clock,
        secrets: SecretBox,
        base_url: str,
        channels: Channels,
        accounts: Accounts,
        audit: Audit,
    ) -> None:
        self._clock = clock
        self._secrets = secrets
        self._base_url = base_url
        self._channels = channels
        self._accounts = accounts
        self._audit = audit

    def rules(self) -> list[InboundRule]:
        return [
            InboundRule("start", self._started, prefix=START_PREFIX),
            InboundRule("button", self._pressed, prefix=BUTTON_PREFIX),
        ]

    async def _started(self, ctx: InboundContext) -> bool:
        assert isinstance(ctx.update, Started)
        token = ctx.update.payload.removeprefix(START_PREFIX)
        request = await self._find(ctx, token)
        if request is None or request.status != "pending" or self._is_own_bot(ctx):
            return False
        if request.purpose == "sign_in" and await self._account(ctx) is None:
            await ctx.reply(OutgoingMessage(_stranger(ctx._)))
            return True
        question = await self._question(ctx, request)
        numbers = offered(self._secrets, NUMBERS, request.digest, request.number)
        picks = tuple(Button(str(each), data=self._data(ctx, str(each), token)) for each in numbers)
        buttons = (picks, (Button(ctx._("Cancel"), data=self._data(ctx, "n", token)),))
        await ctx.reply(OutgoingMessage(question, format="plain", buttons=buttons))
        return True

    async def _question(self, ctx: InboundContext, request: MessengerRequest) -> str:
        _ = ctx._
        host = urlsplit(self._base_url).netloc
        if request.purpose == "sign_in":
            asked = _("Sign in to the dashboard of {host}?", host=host)
        else:
            assert request.account_id is not None
            account = await self._accounts.find(ctx.tx, request.account_id)
            asked = _(
                "Sign in to the dashboard of {host} as {email} with this messenger from now on?",
                host=host,
                email=account.email,
            )
        pick = _("Press the number that the page shows.")
        advice = f"{pick} {_('If you did not start this yourself, press Cancel.')}"
        lines = _circumstances(_, request, self._clock.now_ms())
        return "\n\n".join([asked, "\n".join(lines), advice])

    async def _pressed(self, ctx: InboundContext) -> bool:
        read = self._read(ctx)
        if read is None:
            return False
        choice, token = read
        assert isinstance(ctx.update, ButtonPressed)
        request = await self._find(ctx, token)
        said = await self._answer(ctx, request, choice)
        await ctx.edit(ctx.update.message_ref, OutgoingMessage(said, format="plain"))
        await ctx.answer_button()
        return True

    async def _answer(
        self, ctx: InboundContext, request: MessengerRequest | None, choice: str
    ) -> str:
        """What stands in the question's place from now on."""
        _ = ctx._
        if request is None:
            return _too_late(_)
        if choice != str(request.number):
            # One guess is all there is: of three numbers, the second would be right half the time.
            denied = await store.settle(ctx.tx, request.digest, "pending", "denied", None)
            said = _("Cancelled.") if choice == "n" else _wrong_number(_)
            return said if denied else _too_late(_)
        linking = request.purpose == "link"
        account_id = request.account_id if linking else await self._account(ctx)
        if account_id is None:
            return _stranger(_)
        if not await store.settle(ctx.tx, request.digest, "pending", "confirmed", account_id):
            return _too_late(_)
        if linking:
            return await self._link(ctx, account_id)
        return _("You are signed in. Go back to the page where you started.")

    async def _link(self, ctx: InboundContext, account_id: str) -> str:
        """What the person is told. A press that somebody was talked into moves no messenger that is
        another account's."""
        _ = ctx._
        user = ctx.update.user
        name = user.username or user.first_name or user.user_id
        now_ms = self._clock.now_ms()
        if not await store.link(
            ctx.tx, LinkedMessenger(ctx.channel, user.user_id, account_id, name, now_ms)
        ):
            return _(
                "This messenger is linked to another account. Unlink it there, under Your "
                "account, before you link it here."
            )
        await self._audit.write(
            ctx.tx,
            "account.messenger_linked",
            account_id=account_id,
            target=f"{ctx.channel} {user.user_id}",
        )
        return _("From now on this messenger signs you in to the dashboard.")

    async def _find(self, ctx: InboundContext, token: str) -> MessengerRequest | None:
        return await store.find(ctx.tx, digest_of(token), self._clock.now_ms())

    async def _account(self, ctx: InboundContext) -> str | None:
        return await store.find_account(ctx.tx, ctx.channel, ctx.update.user.user_id)

    def _is_own_bot(self, ctx: InboundContext) -> bool:
        """Of a project's own bot the project has the token, and could be everybody there."""
        return self._channels[ctx.channel].identity.project_id is not None

    def _data(self, ctx: InboundContext, choice: str, token: str) -> str:
        return f"{OWN_BUTTON}{BUTTON_PREFIX}{choice}:{token}:{self._seals(ctx, choice, token)[0]}"

    def _read(self, ctx: InboundContext) -> tuple[str, str] | None:
        """The choice and the token; None if this person was not asked in this chat."""
        assert isinstance(ctx.update, ButtonPressed)
        match = _DATA.fullmatch(ctx.update.data)
        if match is None:
            return None
        choice, token, seal = match.groups()
        fits = [hmac.compare_digest(seal, valid) for valid in self._seals(ctx, choice, token)]
        return (choice, token) if any(fits) else None

    def _seals(self, ctx: InboundContext, choice: str, token: str) -> list[str]:
        parts = (choice, token, ctx.channel, ctx.update.chat_id, ctx.update.user.user_id)
        made = self._secrets.derive_all("dashboard question", *parts)
        return [encode_base62(seal[:16], ID_WIDTH) for seal in made]


def _circumstances(_: Translate, request: MessengerRequest, now_ms: int) -> list[str]:
    """Which browser asks, where from, since when: a line each."""
    lines = []
    agent = " ".join("".join(c if c.isprintable() else " " for c in request.user_agent).split())
    if agent:
        lines.append(_("Browser: {browser}", browser=readable_agent(_, agent)))
    if request.ip:
        lines.append(_("Address: {address}", address=request.ip))
    minutes = (now_ms - request.created_at_ms) // MINUTE_MS
    when = (
        _("just now")
        if minutes < 1
        else _.ngettext("{count} minute ago", "{count} minutes ago", minutes)
    )
    return [*lines, _("Asked: {when}", when=when)]


def _stranger(_: Translate) -> str:
    return _(
        "This messenger is not linked to an account yet. Sign in with your password once, and "
        "link it under Your account."
    )


def _wrong_number(_: Translate) -> str:
    return _("That is not the number on the page. Please start again in the dashboard.")


def _too_late(_: Translate) -> str:
    return _("This is no longer valid. Please start again in the dashboard.")
