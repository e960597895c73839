"""/settings: shows the permissions that a user has granted each project, and changes them."""

from collections.abc import Callable, Sequence

from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.kernel.i18n import Localized, in_language
from msgsvc_core.kernel.values import whole_number
from msgsvc_core.kernel.visible_text import one_line
from msgsvc_core.subscribers.conversation import buttons, texts
from msgsvc_core.subscribers.conversation.known import KnownSubscriptions
from msgsvc_core.subscribers.conversation.models import Subscription, Subscriptions
from msgsvc_core.subscribers.permissions import Permission, Permissions
from msgsvc_core.subscribers.preferences_links import PreferencesLinks
from msgsvc_core.subscribers.service import Subscribers

ON, OFF = "☑", "☐"

#: The state after a press, in the button's data: never "toggle", so that a press on an old message, or a
#: second one, does what its button says.
STATES = {"1": True, "0": False}

#: What a user sends on messengers without buttons: `/settings off sales`.
WORDS = {"on": True, "off": False}


class Choices:
    """The permissions of one project are one message, which is edited after every press."""

    def __init__(
        self,
        *,
        known: KnownSubscriptions,
        subscribers: Subscribers,
        permissions: Permissions,
        default_lang: str,
        links: PreferencesLinks,
    ) -> None:
        self._known = known
        self._links = links
        self._subscribers = subscribers
        self._permissions = permissions
        self._default_lang = default_lang
        self.presses: dict[str, buttons.Press] = {
            "set": self._on_open,
            "put": self._on_change,
            "sets": self._on_turn_page,
        }

    async def handle_command(self, ctx: InboundContext) -> None:
        known = await self._known.of(ctx)
        number, *words = ctx.argument.split() or [""]
        one = known.by_number(number)
        if one is None:
            words = [number, *words]
            one = known.active[0] if len(known.active) == 1 else None
        if not known.active:
            await ctx.reply(texts.not_subscribed(ctx))
        elif one is None:
            await ctx.reply(_project_question(ctx, known, 0))
        else:
            await ctx.reply(await self._apply_words(ctx, known, one, words))

    async def _apply_words(
        self, ctx: InboundContext, known: Subscriptions, one: Subscription, words: Sequence[str]
    ) -> OutgoingMessage:
        """The page, after the change that the user sent, e.g. `off sales`, was made."""
        granted, key = (
            (WORDS.get(words[0].lower()), words[1].lower()) if len(words) > 1 else (None, "")
        )
        offered = await self._permissions.list_all(ctx.tx, one.project_id)
        if granted is not None and one.is_active and any(found.key == key for found in offered):
            await self._subscribers.set_permission(
                ctx.tx, one.project_id, one.subscriber_id, key, granted
            )
        return await self._page(ctx, known, one, 0)

    async def _on_turn_page(self, ctx: InboundContext, parts: Sequence[str]) -> None:
        known = await self._known.of(ctx)
        page = buttons.page_of((*parts, "")[0], len(known.active))
        message = _project_question(ctx, known, page) if known.active else texts.not_subscribed(ctx)
        await buttons.replace(ctx, message)

    async def _on_open(self, ctx: InboundContext, parts: Sequence[str]) -> None:
        which, page = (*parts, "", "")[:2]
        known = await self._known.of(ctx)
        await self._show(ctx, known, known.by_id(which), page)

    async def _on_change(self, ctx: InboundContext, parts: Sequence[str]) -> None:
        which, permission, state, page = (*parts, "", "", "", "")[:4]
        known = await self._known.of(ctx)
        one, granted = known.by_id(which), STATES.get(state)
        notice = None
        if one is not None and one.is_active and granted is not None:
            notice = await self._change(ctx, one, permission, granted)
        await self._show(ctx, known, one, page, notice)

    async def _change(
        self, ctx: InboundContext, one: Subscription, permission: str, granted: bool
    ) -> str:
        """Makes a change; returns a notice, for platforms that can't edit the page any more."""
        offered = await self._permissions.list_all(ctx.tx, one.project_id)
        asked = [found for found in offered if buttons.digest(found.key) == permission]
        if not asked:
            _ = ctx._
            return _("{project} no longer asks for this.", project=one.project)
        await self._subscribers.set_permission(
            ctx.tx, one.project_id, one.subscriber_id, asked[0].key, granted
        )
        return _label(ctx, asked[0], is_on=granted, default_lang=self._default_lang)

    async def _show(
        self,
        ctx: InboundContext,
        known: Subscriptions,
        one: Subscription | None,
        page: str,
        notice: str | None = None,
    ) -> None:
        if one is None:
            message = texts.not_subscribed(ctx)
        else:
            message = await self._page(ctx, known, one, whole_number(page) or 0)
        await buttons.replace(ctx, message, notice)

    async def _page(
        self, ctx: InboundContext, known: Subscriptions, one: Subscription, page: int
    ) -> OutgoingMessage:
        if not one.is_active:
            return texts.not_subscribed_to(ctx, [one])
        offered = await self._permissions.list_all(ctx.tx, one.project_id)
        subscriber = await self._subscribers.get(ctx.tx, one.project_id, one.subscriber_id)
        shown = _Page(
            ctx,
            known,
            one,
            offered=offered,
            granted=set(subscriber.permissions),
            default_lang=self._default_lang,
            page_url=self._links.url(one.project_id, one.subscriber_id)
            if self._links.is_public
            else None,
        )
        return shown.message(page)


class _Page:
    """The permissions of one project and user."""

    def __init__(
        self,
        ctx: InboundContext,
        known: Subscriptions,
        one: Subscription,
        *,
        offered: Sequence[Permission],
        granted: set[str],
        default_lang: str,
        page_url: str | None,
    ) -> None:
        self._page_url = page_url
        self._ctx = ctx
        self._default_lang = default_lang
        self._known = known
        self._one = one
        self._offered = offered
        self._granted = granted

    def message(self, page: int) -> OutgoingMessage:
        """With descriptions, unless the text is too long for the messenger."""
        whole = self._message(page, self._described)
        return self._message(page, self._label) if self._ctx.bot.problem(whole) else whole

    def _message(self, page: int, line: Callable[[Permission], str]) -> OutgoingMessage:
        _ = self._ctx._
        page = buttons.page_of(str(page), len(self._offered))
        here = self._offered[page * buttons.ROWS : (page + 1) * buttons.ROWS]
        title = _("Notifications from {project}", project=self._one.project)
        if not self._offered:
            nothing = _("There are no settings to change. /stop unsubscribes you.")
            return OutgoingMessage(f"{title}\n\n{nothing}", buttons=self._others())
        if not buttons.are_shown(self._ctx):
            # All on one page: the user could not turn pages.
            lines = "\n".join(f"{line(found)} ({found.key})" for found in self._offered)
            return OutgoingMessage(f"{title}\n\n{lines}\n\n{self._how()}")
        rows = [(self._switch(found, page),) for found in self._offered]
        turning = buttons.turning(
            page, len(rows), lambda to: buttons.data("set", self._one.subscriber_id, to)
        )
        return OutgoingMessage(
            f"{title}\n\n" + "\n".join(map(line, here)),
            buttons=(*buttons.on_page(rows, page), *turning, *self._others()),
        )

    def _described(self, permission: Permission) -> str:
        """`☑ Sales: on – discounts of the week`."""
        said = self._label(permission)
        if permission.description is None:
            return said
        return f"{said} – {self._text(permission.description)}"

    def _label(self, permission: Permission) -> str:
        is_on = permission.key in self._granted
        return _label(self._ctx, permission, is_on=is_on, default_lang=self._default_lang)

    def _text(self, text: Localized) -> str:
        return _text(text, self._ctx.lang, self._default_lang)

    def _switch(self, permission: Permission, page: int) -> Button:
        turned = "0" if permission.key in self._granted else "1"
        parts = (self._one.subscriber_id, buttons.digest(permission.key), turned, page)
        return Button(self._label(permission), data=buttons.data("put", *parts))

    def _others(self) -> tuple[tuple[Button, ...], ...]:
        """Buttons that lead to the same choices on a page, and back to the other projects."""
        _ = self._ctx._
        if not buttons.are_shown(self._ctx):
            return ()
        rows: list[tuple[Button, ...]] = []
        if self._page_url is not None:
            rows.append((Button(_("Open as a page"), url=self._page_url),))
        if len(self._known.active) > 1:
            rows.append((Button(_("‹ Other senders"), data=buttons.data("sets", 0)),))
        return tuple(rows)

    def _how(self) -> str:
        _, key = self._ctx._, self._offered[0].key
        word = "off" if key in self._granted else "on"
        number = f"{self._one.number} " if len(self._known.active) > 1 else ""
        return _(
            "To change one, write for example {command}", command=f"/settings {number}{word} {key}"
        )


def _label(ctx: InboundContext, permission: Permission, *, is_on: bool, default_lang: str) -> str:
    """`☑ Sales: on`."""
    _ = ctx._
    title = _text(permission.title, ctx.lang, default_lang)
    return f"{ON if is_on else OFF} {title}: {_('on') if is_on else _('off')}"


def _text(text: Localized, lang: str, default_lang: str) -> str:
    return one_line(in_language(text, lang, default_lang))


def _project_question(ctx: InboundContext, known: Subscriptions, page: int) -> OutgoingMessage:
    _, active = ctx._, known.active
    text = _("Whose notifications would you like to set up?")
    if not buttons.are_shown(ctx):
        how = _("Write /settings and the number.")
        return OutgoingMessage(f"{text}\n\n{texts.numbered(active)}\n\n{how}")
    rows = [
        (Button(one.project, data=buttons.data("set", one.subscriber_id, 0)),) for one in active
    ]
    turning = buttons.turning(page, len(rows), lambda to: buttons.data("sets", to))
    return OutgoingMessage(text, buttons=(*buttons.on_page(rows, page), *turning))
