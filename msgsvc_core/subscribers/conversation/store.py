"""The SQL of conversations. A bot knows a person across projects, so these ask by bot and person."""

from msgsvc_core.db import Tx
from msgsvc_core.subscribers.conversation.models import Subscription, Subscriptions


async def subscriptions(tx: Tx, bot: str, user_id: str) -> Subscriptions:
    """A person's by this bot, whether active or not."""
    rows = await tx.fetch_all(
        "SELECT s.project_id, s.subscriber_id, s.status, p.name, p.status AS project_status"
        " FROM core_subscribers s JOIN core_projects p ON p.project_id = s.project_id"
        " WHERE s.bot = :bot AND s.user_id = :user_id ORDER BY s.subscriber_id",
        {"bot": bot, "user_id": user_id},
    )
    return Subscriptions(
        [
            Subscription(
                number=number,
                project_id=row["project_id"],
                subscriber_id=row["subscriber_id"],
                status=row["status"],
                project=row["name"],
                project_is_active=row["project_status"] == "active",
            )
            for number, row in enumerate(rows, 1)
        ]
    )


async def set_language(tx: Tx, bot: str, chat_id: str, user_id: str, lang: str) -> None:
    """For what the bot says in the chat, and for what projects send by it."""
    await tx.execute(
        "UPDATE core_chats SET lang = :lang WHERE channel = :bot AND chat_id = :chat_id",
        {"lang": lang, "bot": bot, "chat_id": chat_id},
    )
    await tx.execute(
        "UPDATE core_subscribers SET lang = :lang WHERE bot = :bot AND user_id = :user_id",
        {"lang": lang, "bot": bot, "user_id": user_id},
    )
