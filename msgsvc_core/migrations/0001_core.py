"""The core's tables.

Times are Unix milliseconds. Ids compare byte by byte on both databases, so they sort by creation.
Tables written on every send carry no foreign keys: they would be checked on the hottest path.
Indexes hold no more rows than are looked for by them, and messages have few: each is written on every send.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0001"
down_revision = None
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    _projects()
    _subscribers()
    _contacts()
    _permissions()
    _tags()
    _links()
    _members()
    _channels()
    _chats()
    _messages()
    _templates()
    _mailings()
    _recipients()
    _files()
    _events()
    _jobs()
    _limits()
    _database()


def _projects() -> None:
    op.create_table(
        "core_projects",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        # By language, as JSON.
        sa.Column("texts", sa.Text),
        # Accounts are a plugin's. A project without one belongs to the operator alone.
        sa.Column("account_id", Id),
    )
    _index("core_projects_account", "core_projects", ["account_id", "project_id"])
    op.create_table(
        "core_api_keys",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("key_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("prefix", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False, unique=True),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("last_used_at_ms", Ms),
        sa.Column("revoked_at_ms", Ms),
    )
    op.create_table(
        "core_idempotency",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("body", sa.Text),
        sa.Column("created_at_ms", Ms, nullable=False),
    )
    _index("core_idempotency_age", "core_idempotency", ["created_at_ms"])


def _subscribers() -> None:
    op.create_table(
        "core_subscribers",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("chat_id", sa.Text, nullable=False),
        sa.Column("first_name", sa.Text, nullable=False),
        sa.Column("username", sa.Text),
        sa.Column("lang", sa.Text, nullable=False),
        sa.Column("external_id", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("last_seen_at_ms", Ms, nullable=False),
        # The key of the channel whose bot they know (see `_channels`).
        sa.Column("bot", sa.Text, nullable=False, server_default=""),
        sa.Column("attributes", sa.Text),
        # What they are searched by, from its beginning: see `msgsvc_core.subscribers.searching`.
        sa.Column("search_name", Id),
        sa.Column("search_username", Id),
        sa.Column("search_external_id", Id),
        sa.UniqueConstraint("project_id", "channel", "user_id"),
        sa.UniqueConstraint("project_id", "external_id", "channel"),
    )
    _index("core_subscribers_user", "core_subscribers", ["bot", "user_id"])
    for column in ("channel", "status", "lang"):
        _index(
            f"core_subscribers_{column}",
            "core_subscribers",
            ["project_id", column, "subscriber_id"],
        )
    for column in ("search_name", "search_username", "search_external_id"):
        _index(
            f"core_subscribers_{column}",
            "core_subscribers",
            ["project_id", column, "subscriber_id"],
            where=f"{column} IS NOT NULL",
        )
    _index_creation()


def _index_creation() -> None:
    """On PostgreSQL the id is in the index by time as a value, no key: without statistics yet, it was
    taken for the primary key's, and each look-up of a subscriber went through all of the project."""
    name, by_time = "core_subscribers_created", ["project_id", "created_at_ms"]
    if _is_sqlite():
        _index(name, "core_subscribers", [*by_time, "subscriber_id"])
    else:
        op.create_index(name, "core_subscribers", by_time, postgresql_include=["subscriber_id"])


def _contacts() -> None:
    """What a messenger or a code verified, encrypted: `value` can't be searched, and nothing looks for it."""
    op.create_table(
        "core_subscriber_contacts",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
        # Which secret key encrypted it.
        sa.Column("key_mark", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("verified_at_ms", Ms, nullable=False),
        _subscriber(),
    )
    _index("core_subscriber_contacts_key", "core_subscriber_contacts", ["key_mark"])


def _permissions() -> None:
    op.create_table(
        "core_permissions",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        # Both by language, as JSON.
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("is_default", sa.Boolean, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
    )
    op.create_table(
        "core_subscriber_permissions",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("permission", sa.Text, primary_key=True),
        sa.Column("granted_at_ms", Ms, nullable=False),
        _subscriber(),
        sa.ForeignKeyConstraint(
            ["project_id", "permission"],
            ["core_permissions.project_id", "core_permissions.key"],
            ondelete="CASCADE",
        ),
    )
    _index(
        "core_subscriber_permissions_key",
        "core_subscriber_permissions",
        ["project_id", "permission", "subscriber_id"],
    )


def _tags() -> None:
    """Whoever carries a tag refers to its id: another name is one row, however many carry it.

    One that was deleted has no name until a job has taken it from everybody.
    """
    op.create_table(
        "core_tags",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("tag_id", sa.Text, primary_key=True),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("name", sa.Text, server_default=""),
    )
    _index("core_tags_name", "core_tags", ["project_id", "name"], unique=True)
    op.create_table(
        "core_subscriber_tags",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("tag_id", sa.Text, primary_key=True),
        _subscriber(),
        sa.ForeignKeyConstraint(
            ["project_id", "tag_id"],
            ["core_tags.project_id", "core_tags.tag_id"],
            ondelete="CASCADE",
            onupdate="CASCADE",
        ),
    )
    # With the ids, it has the subscribers of a tag in the order of lists.
    _index(
        "core_subscriber_tags_tag",
        "core_subscriber_tags",
        ["project_id", "tag_id", "subscriber_id"],
    )


def _links() -> None:
    op.create_table(
        "core_links",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("tag_ids", sa.Text, nullable=False),
        sa.Column("external_id", sa.Text),
        sa.Column("expires_at_ms", Ms, nullable=False),
        sa.Column("permissions", sa.Text, nullable=False, server_default="[]"),
    )
    _index("core_links_digest", "core_links", ["digest"])
    # What a short code stands for, by the code's keyed hash.
    op.create_table(
        "core_start_codes",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("expires_at_ms", Ms, nullable=False),
    )
    _index("core_start_codes_age", "core_start_codes", ["expires_at_ms"])


def _members() -> None:
    """Members of a project, who they are in messengers, and the links by which they say so."""
    op.create_table(
        "core_members",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("member_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("removed_at_ms", Ms),
        sa.Column("account_id", Id),
    )
    # An email names one active member of a project; that of a removed one is free again.
    _index(
        "core_members_email",
        "core_members",
        ["project_id", "email"],
        where="status = 'active'",
        unique=True,
    )
    _index(
        "core_members_account",
        "core_members",
        ["account_id", "project_id"],
        where="status = 'active' AND account_id IS NOT NULL",
        unique=True,
    )
    _index("core_members_status", "core_members", ["project_id", "status", "member_id"])
    op.create_table(
        "core_member_subscribers",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("member_id", Id, nullable=False),
        sa.Column("linked_at_ms", Ms, nullable=False),
        _subscriber(),
        _member(),
    )
    _index("core_member_subscribers_member", "core_member_subscribers", ["project_id", "member_id"])
    # A link works once, and is kept until it expires, so that who opens it twice is answered as before.
    op.create_table(
        "core_member_links",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("project_id", Id, nullable=False),
        sa.Column("member_id", Id, nullable=False),
        # The subscriber who opened it; it names nobody who has been erased.
        sa.Column("used_by", Id),
        sa.Column("expires_at_ms", Ms, nullable=False),
        _member(),
    )
    _index("core_member_links_member", "core_member_links", ["project_id", "member_id"])


def _channels() -> None:
    """Channels of a project's own, what is known of each bot, and what its platform asks to be kept to.

    `channel` is a channel's key, in other tables called `bot`: the name of a configured channel, or the
    id of a project's own.
    """
    op.create_table(
        "core_channels",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("channel_id", Id, nullable=False, unique=True),
        sa.Column("plugin", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("updated_at_ms", Ms, nullable=False),
        sa.Column("removed_at_ms", Ms),
    )
    op.create_table(
        "core_bots",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("settings_digest", sa.Text, nullable=False),
        sa.Column("profile", sa.Text),
        sa.Column("cursor", sa.Text),
        sa.Column("webhook_digest", sa.Text),
        sa.Column("webhook_at_ms", Ms),
        sa.Column("revision", sa.BigInteger, nullable=False),
        # Whom its token belongs to, as the platform says; null while it has not said.
        sa.Column("account", sa.Text),
    )
    op.create_table(
        "core_revisions",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
    )
    # A row is there once there was something to say.
    op.create_table(
        "core_channel_states",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("status", sa.Text, nullable=False, server_default="working"),
        sa.Column("reason", sa.Text),
        sa.Column("detail", sa.Text),
        sa.Column("paused_until_ms", Ms, nullable=False, server_default="0"),
        sa.Column("changed_at_ms", Ms, nullable=False),
        # Since when the platform has not answered, and how it is probed; null while it answers.
        sa.Column("outage_since_ms", Ms),
        sa.Column("outage_detail", sa.Text),
        sa.Column("outage_probes", sa.Integer, nullable=False, server_default="0"),
        sa.Column("outage_trial", sa.Integer, nullable=False, server_default="0"),
        sa.Column("outage_probe_at_ms", Ms),
        # Since when the bot receives nothing, and why; null while it receives.
        sa.Column("interrupted_since_ms", Ms),
        sa.Column("interrupted_reason", sa.Text),
        sa.Column("interrupted_detail", sa.Text),
    )


def _chats() -> None:
    op.create_table(
        "core_chats",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("chat_id", sa.Text, primary_key=True),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("project_id", Id, _project()),
        sa.Column("seen_at_ms", Ms, nullable=False),
        # What the person chose there; without it their messenger's language counts.
        sa.Column("lang", sa.Text),
    )
    # A mini app and an erasure name a person, and look for their chat.
    _index("core_chats_user", "core_chats", ["channel", "user_id"])
    op.create_table(
        "core_updates",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("update_id", sa.Text, primary_key=True),
        sa.Column("received_at_ms", Ms, nullable=False),
    )
    _index("core_updates_age", "core_updates", ["received_at_ms"])
    # The newest question of a chat, encrypted, where the platform has no buttons.
    op.create_table(
        "core_offers",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("chat_id", sa.Text, primary_key=True),
        sa.Column("offer_id", sa.Text, nullable=False),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("message_ref", sa.Text),
        sa.Column("asked_at_ms", Ms, nullable=False),
    )
    _index("core_offers_age", "core_offers", ["asked_at_ms"])


def _messages() -> None:
    # On SQLite a message is entered into the index by subscriber later, many at a time: it writes whole
    # pages, and each message goes to another one (docs/decisions/0012-group-commit.md).
    filed = [sa.Column("filed", sa.SmallInteger)] if _is_sqlite() else []
    op.create_table(
        "core_messages",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("message_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("metadata", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("message_ref", sa.Text),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("expires_at_ms", Ms),
        sa.Column("finished_at_ms", Ms),
        sa.Column("bot", sa.Text, nullable=False, server_default=""),
        sa.Column("permission", sa.Text),
        sa.Column("batch_id", Id),
        sa.Column("edited_at_ms", Ms),
        sa.Column("deleted_at_ms", Ms),
        # What people see of it while an edit is under way.
        sa.Column("shown", sa.Text),
        # Its mailing.
        sa.Column("job_id", Id),
        *filed,
    )
    of_one = ["project_id", "subscriber_id", "message_id"]
    if _is_sqlite():
        _index("core_messages_filed", "core_messages", of_one, where="filed = 1")
        _index(
            "core_messages_unfiled",
            "core_messages",
            ["project_id", "message_id", "subscriber_id"],
            where="filed IS NULL",
        )
    else:
        _index("core_messages_subscriber", "core_messages", of_one)
    _index(
        "core_messages_ref",
        "core_messages",
        ["bot", "message_ref"],
        where="message_ref IS NOT NULL",
    )
    # Of most messages it becomes `sent`: with it here, each would be written once more.
    _index(
        "core_messages_status",
        "core_messages",
        ["project_id", "status", "message_id"],
        where="status <> 'sent'",
    )
    _index("core_messages_channel", "core_messages", ["project_id", "channel", "message_id"])
    _index(
        "core_messages_reason",
        "core_messages",
        ["project_id", "reason", "message_id"],
        where="reason IS NOT NULL",
    )
    _index(
        "core_messages_batch",
        "core_messages",
        ["project_id", "batch_id", "message_id"],
        where="batch_id IS NOT NULL",
    )
    op.create_table(
        "core_batches",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("batch_id", Id, primary_key=True),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("sent", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.Column("skipped", sa.Integer, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("finished_at_ms", Ms),
        # `failed` holds them too.
        sa.Column("unknown", sa.Integer, nullable=False, server_default="0"),
    )


def _templates() -> None:
    op.create_table(
        "core_templates",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("template_id", Id, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("updated_at_ms", Ms, nullable=False),
    )
    _index("core_templates_newest", "core_templates", ["project_id", "template_id"])


def _mailings() -> None:
    """Mailings: one message to an audience. Their ways out are one for each bot: how far the walk has
    come, and whom it has in hand at the moment."""
    op.create_table(
        "core_mailings",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("job_id", Id, primary_key=True),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("audience", sa.Text, nullable=False),
        sa.Column("permission", sa.Text),
        sa.Column("metadata", sa.Text),
        sa.Column("per_minute", sa.Integer),
        sa.Column("expires_at_ms", Ms),
        sa.Column("send_at_ms", Ms),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("sent", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.Column("skipped", sa.Integer, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("resend_of", Id),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("started_at_ms", Ms),
        sa.Column("finished_at_ms", Ms),
        sa.Column("expanded_to", Id),
        sa.Column("next_us", Ms, nullable=False),
        sa.Column("timed_from_ms", Ms),
        sa.Column("timed_from", sa.Integer, nullable=False),
        # How many recipients were paid for at the call.
        sa.Column("charged", sa.Integer),
        # When its ledger was removed.
        sa.Column("purged_at_ms", Ms),
        # `failed` holds them too.
        sa.Column("unknown", sa.Integer, nullable=False, server_default="0"),
    )
    _index("core_mailings_source", "core_mailings", ["project_id", "source", "job_id"])
    _index("core_mailings_status", "core_mailings", ["project_id", "source", "status", "job_id"])
    _index(
        "core_mailings_ended",
        "core_mailings",
        ["finished_at_ms"],
        where="finished_at_ms IS NOT NULL AND purged_at_ms IS NULL",
    )
    # Those of all projects, for operators.
    _index("core_mailings_all", "core_mailings", ["job_id"])
    _index("core_mailings_open", "core_mailings", ["job_id"], where="finished_at_ms IS NULL")
    op.create_table(
        "core_mailing_ways",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("job_id", Id, primary_key=True),
        sa.Column("bot", sa.Text, primary_key=True),
        sa.Column("walked_to", Id, nullable=False),
        sa.Column("in_hand", sa.Text, nullable=False),
        sa.Column("is_done", sa.Boolean, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "job_id"],
            ["core_mailings.project_id", "core_mailings.job_id"],
            ondelete="CASCADE",
        ),
    )


def _recipients() -> None:
    """The ledger of mailings: one row for a person and mailing. Its key begins with the person, so that
    erasing one finds their rows; the index by mailing is what the walk goes along. An index by every
    status is left out on purpose: each row changes its status once, and would be written twice. On
    PostgreSQL no index names `status`, and pages have room: so the change from `queued` to `sent` writes no
    index at all (docs/decisions/0012-group-commit.md)."""
    op.create_table(
        "core_recipients",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("job_id", Id, primary_key=True),
        sa.Column("bot", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("message_id", Id),
        sa.Column("reason", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("run_at_ms", Ms),
        # Since when the platform asks to wait with them.
        sa.Column("refused_from_ms", Ms),
        # The status of those who did not get it: null for `queued` and `sent`.
        sa.Column(
            "not_sent",
            sa.Text,
            sa.Computed(
                "CASE WHEN status NOT IN ('queued', 'sent') THEN status END", persisted=True
            ),
        ),
        _subscriber(),
        # Each row is written twice, the second time with the id of its message.
        postgresql_with={"fillfactor": 45},
    )
    _index("core_recipients_walk", "core_recipients", ["project_id", "job_id", "subscriber_id"])
    # Only who is to be tried again is in it.
    _index(
        "core_recipients_waiting",
        "core_recipients",
        ["project_id", "job_id", "bot", "run_at_ms"],
        where="run_at_ms IS NOT NULL",
    )
    # Only those who did not get it, and who are asked for.
    _index(
        "core_recipients_not_sent",
        "core_recipients",
        ["project_id", "job_id", "not_sent", "subscriber_id"],
        where="not_sent IS NOT NULL",
    )


def _files() -> None:
    """What people send to bots, and what projects upload, kept in chunks. Subscribers are named without a
    foreign key: their files go with `subscriber.erase`, a few at a time, and not within the request that
    erases a person."""
    op.create_table(
        "core_files",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("file_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("filename", sa.Text, nullable=False),
        sa.Column("mime_type", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        # Where one that has yet to be fetched is found, encrypted; emptied when it is there, or won't come.
        sa.Column("source", sa.Text),
        sa.Column("is_kept", sa.Boolean, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
    )
    # Whoever has a signed address names the file alone.
    _index("core_files_id", "core_files", ["file_id"], unique=True)
    _index("core_files_subscriber", "core_files", ["project_id", "subscriber_id"])
    _index("core_files_loose", "core_files", ["created_at_ms"], where="NOT is_kept")
    # Whose content is removed after them, a few at a time.
    _index("core_files_removed", "core_files", ["file_id"], where="status = 'removed'")
    op.create_table(
        "core_file_chunks",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("file_id", Id, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "file_id"],
            ["core_files.project_id", "core_files.file_id"],
            ondelete="CASCADE",
        ),
    )


def _events() -> None:
    op.create_table(
        "core_events",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("event_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("occurred_at_ms", Ms, nullable=False),
        # The subscriber in whose history it stands. Deliveries stand in nobody's, their messages do.
        sa.Column("history_of", Id),
    )
    _index("core_events_age", "core_events", ["occurred_at_ms"])
    _index("core_events_name", "core_events", ["project_id", "name", "event_id"])
    _index(
        "core_events_history",
        "core_events",
        ["project_id", "history_of", "event_id"],
        where="history_of IS NOT NULL",
    )


def _jobs() -> None:
    """The queue, who has leased its lanes, and the runners there are.

    A job waits, runs and is gone, and each of the three is in an index of its own. `core_jobs_ready` alone
    tells what a lane has to do next and, by its first columns, which lanes there are: neither takes a look
    at the jobs themselves.
    """
    op.create_table(
        "core_jobs",
        sa.Column("job_id", Id, primary_key=True),
        sa.Column("project_id", Id),
        sa.Column("lane", sa.Text, nullable=False),
        sa.Column("priority", sa.SmallInteger, nullable=False),
        sa.Column("run_at_ms", Ms, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("deliveries", sa.Integer, nullable=False),
        sa.Column("leased_by", sa.Text),
        sa.Column("leased_until_ms", Ms),
        sa.Column("last_error", sa.Text),
        sa.Column("created_at_ms", Ms, nullable=False),
        # Since when a platform has asked to wait with what it is to do; null while it has not.
        sa.Column("refused_from_ms", Ms),
    )
    _index(
        "core_jobs_ready",
        "core_jobs",
        ["lane", "priority", "run_at_ms", "job_id"],
        where="state = 'ready'",
    )
    _index("core_jobs_running", "core_jobs", ["lane", "leased_until_ms"], where="state = 'running'")
    _index("core_jobs_dead", "core_jobs", ["name", "job_id"], where="state = 'dead'")
    # Those of all projects, for operators.
    _index("core_jobs_letters", "core_jobs", ["job_id"], where="state = 'dead'")
    _index(
        "core_jobs_key",
        "core_jobs",
        ["name", "key"],
        where="key IS NOT NULL AND state <> 'dead'",
        unique=True,
    )
    op.create_table(
        "core_lanes",
        sa.Column("lane", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("leased_until_ms", Ms, nullable=False),
    )
    op.create_table(
        "core_runners",
        sa.Column("runner_id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("leased_until_ms", Ms, nullable=False),
    )


def _limits() -> None:
    """Hits of limits that hold over restarts and processes: numbered without gaps for each key."""
    op.create_table(
        "core_limit_hits",
        # The hash of the limit's key and its window.
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True),
        sa.Column("at_ms", Ms, nullable=False),
        sa.Column("expires_at_ms", Ms, nullable=False),
    )
    _index("core_limit_hits_age", "core_limit_hits", ["expires_at_ms"])


def _database() -> None:
    """What is asked of the database itself."""
    # One row, by which a loss of `secret_keys` shows.
    op.create_table(
        "core_key_canary",
        sa.Column("canary_id", sa.Integer, primary_key=True),
        sa.Column("sealed", sa.Text, nullable=False),
    )
    # Written, and taken away again, to find out whether a full disk has room again.
    op.create_table(
        "core_write_trials",
        sa.Column("trial_id", sa.Text, primary_key=True),
        sa.Column("filler", sa.Text, nullable=False),
    )


def _index(
    name: str, table: str, columns: list[str], *, where: str | None = None, unique: bool = False
) -> None:
    rows = None if where is None else sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=rows, postgresql_where=rows)


def _is_sqlite() -> bool:
    return op.get_context().dialect.name == "sqlite"


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")


def _subscriber() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["project_id", "subscriber_id"],
        ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
        ondelete="CASCADE",
    )


def _member() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["project_id", "member_id"],
        ["core_members.project_id", "core_members.member_id"],
        ondelete="CASCADE",
    )
