"""Texts of system messages, in the user's language. Plain text only: names are user input."""

from collections.abc import Callable, Iterable, Sequence

from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.subscribers.conversation.models import Subscription

#: Maximum number of projects named in a sentence.
MOST_NAMED = 20

#: Listed commands, including plugins', each with its description in a language.
Commands = Callable[[str], Iterable[tuple[str, str]]]


def listed(commands: Iterable[tuple[str, str]]) -> str:
    """A line for each command."""
    return "\n".join(f"/{name} – {about}" for name, about in commands)


def stranger(ctx: InboundContext) -> OutgoingMessage:
    """For a user who found a shared bot without a link."""
    _ = ctx._
    if not ctx.bot.capabilities.start_links:
        return OutgoingMessage(
            _("Hello! To start, write here what a site that uses this bot shows you.")
        )
    return OutgoingMessage(_("Hello! To start, open a link from a site that uses this bot."))


def hello(
    ctx: InboundContext, active: Sequence[Subscription], commands: Iterable[tuple[str, str]]
) -> str:
    """For an existing subscriber."""
    _ = ctx._
    known = _(
        "Hello! You are subscribed to notifications from {projects}.", projects=named(ctx, active)
    )
    return f"{known}\n\n{listed(commands)}"


def welcome_back(ctx: InboundContext) -> str:
    """Above buttons for resubscribing."""
    _ = ctx._
    return _("Hello! You are unsubscribed. Whose notifications would you like to get again?")


def not_subscribed(ctx: InboundContext) -> OutgoingMessage:
    _ = ctx._
    return OutgoingMessage(
        _("You are not subscribed to anything here. Write /start to start again.")
    )


def not_subscribed_to(ctx: InboundContext, asked: Sequence[Subscription]) -> OutgoingMessage:
    _, projects = ctx._, named(ctx, asked)
    return OutgoingMessage(
        _("You are not subscribed to notifications from {projects}.", projects=projects)
    )


def unsubscribed(ctx: InboundContext, gone: Sequence[Subscription]) -> OutgoingMessage:
    """The default farewell."""
    _ = ctx._
    return OutgoingMessage(
        _(
            "You are unsubscribed from {projects}. Write /start to subscribe again.",
            projects=named(ctx, gone),
        )
    )


def too_old(ctx: InboundContext, command: str) -> OutgoingMessage:
    """Replaces a question whose answer has expired."""
    _ = ctx._
    return OutgoingMessage(
        _("This question is no longer valid. Write /{command} to be asked again.", command=command)
    )


def named(ctx: InboundContext, subscriptions: Iterable[Subscription]) -> str:
    """`Shop, News`: projects by their names, in quotes if the language uses them."""
    _ = ctx._
    names = [_("{project}", project=one.project) for one in subscriptions]
    return ", ".join(names if len(names) <= MOST_NAMED else [*names[:MOST_NAMED], "…"])


def numbered(subscriptions: Iterable[Subscription]) -> str:
    """A line for each, with the number that the user can send after a command."""
    return "\n".join(f"{one.number}. {one.project}" for one in subscriptions)
