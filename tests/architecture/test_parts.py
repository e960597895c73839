"""Each part of the service is built by hand, from fakes, in a unit test."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: What composes a service and its plugins.
ROOTS = (
    ROOT / "msgsvc_core" / "service.py",
    *sorted(ROOT.glob("plugins/*/*/msgsvc_*/plugin.py")),
)

#: Where the tests without a database are, of the core and of plugins.
UNIT_TESTS = ("tests/unit", "plugins/*/*/tests/unit")

#: Declarations and values, which have no rules.
DECLARATIONS = {
    "ChannelContext",
    "ChannelKind",
    "LaneSpec",
    "MigrationSource",
    "Peers",
    "PluginContext",
    "RetentionRule",
    "SettingsSection",
}

#: What is about the database, another server or another process itself: a fake would show nothing.
ABOUT_THE_DATABASE = {
    "Database": "transactions, pools and group commit (tests/contracts/test_database.py)",
    "DatabaseLimiter": "one statement that counts and decides (tests/contracts/test_limiter.py)",
    "DatabaseMetrics": "gauges of what the database holds",
    "JobAdmin": "statements on the job table (tests/contracts/test_interventions.py)",
    "LaneRunner": "leases and claims (tests/contracts/test_job_leases.py)",
    "LedgerPurge": "one statement that deletes",
    "MessageFiling": "SQLite's full rows, moved by statements",
    "RedisLimiter": "a script in Redis (tests/contracts/test_limiter.py)",
    "UpdateReceiver": "leases of reception between processes",
}

#: Those that no unit test builds yet. The list only gets shorter: a new part comes with its test. Classes of
#: one name in two distributions count as one.
NOT_YET = frozenset(
    (
        "AccountLinks",
        "Admission",
        "AgentBot",
        "AgentDesk",
        "Answering",
        "AttemptMetrics",
        "Audit",
        "Authentication",
        "BatchCounts",
        "Batches",
        "BillingMetrics",
        "Blocklist",
        "BotCalls",
        "CallsByLane",
        "CannedAnswers",
        "ChannelKinds",
        "ChannelOutages",
        "ChannelSender",
        "ChannelStateMetrics",
        "ChannelStates",
        "ChannelSync",
        "Channels",
        "CodeExchange",
        "ComposeForm",
        "Confirmations",
        "Conversation",
        "Conversations",
        "Cookies",
        "Copies",
        "Counts",
        "DeadMailings",
        "Deliveries",
        "Dialogues",
        "DripJobs",
        "Drips",
        "EndpointDispatcher",
        "Entering",
        "ErrorCatalogue",
        "Faults",
        "Files",
        "FoldJob",
        "FormBot",
        "FormPages",
        "Forms",
        "Gate",
        "Health",
        "HelpdeskBot",
        "HostedPages",
        "HostedSignIn",
        "Idempotency",
        "Inbound",
        "InboundDispatcher",
        "Inbox",
        "Intake",
        "KeyAreas",
        "LinkPages",
        "Mailbox",
        "MailingExpansion",
        "MailingOutcomes",
        "MailingSender",
        "MailingValidation",
        "Mailings",
        "MediaFiles",
        "Members",
        "MessageChanges",
        "MessageChoices",
        "MessageDelivery",
        "MessageEditor",
        "MessageOutcomes",
        "Messenger",
        "MessengerPages",
        "MessengerSignIn",
        "Metrics",
        "MiniAppSignIn",
        "MiniAppSubscribing",
        "NotFoundPage",
        "OutboundGates",
        "OutcomeWriter",
        "PageTemplates",
        "PageTokens",
        "PageTools",
        "Places",
        "Planner",
        "ProjectChannels",
        "Projects",
        "Questions",
        "Ratings",
        "Readiness",
        "Reauthentication",
        "ReceptionHealth",
        "RecipientSender",
        "Reminders",
        "Removal",
        "Rendering",
        "Renewal",
        "Replays",
        "Running",
        "SandboxPages",
        "ScheduleJobs",
        "SealedColumn",
        "SecondFactor",
        "SentNotes",
        "Sharing",
        "SignIn",
        "SignInBot",
        "SignInMetrics",
        "SignInPages",
        "Site",
        "Statements",
        "StepRunner",
        "SubmissionRouter",
        "SubscriberErasure",
        "Subscribers",
        "Team",
        "Templates",
        "Throttle",
        "TicketJobs",
        "TicketList",
        "Tickets",
        "Triggers",
        "TypedAnswers",
        "WebForms",
        "WebhookJobs",
        "Webhooks",
    )
)


def parts() -> set[str]:
    """The classes of ours that the composition roots build."""
    found = set()
    for path in ROOTS:
        tree = ast.parse(path.read_text("utf-8"))
        ours = {
            name.asname or name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("msgsvc_")
            for name in node.names
        }
        found |= _built(tree) & ours
    return found - DECLARATIONS


def built_by_hand() -> set[str]:
    """The classes that unit tests build."""
    return {
        name
        for folder in UNIT_TESTS
        for path in ROOT.glob(f"{folder}/**/*.py")
        for name in _built(ast.parse(path.read_text("utf-8")))
    }


def _built(tree: ast.AST) -> set[str]:
    return {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id[:1].isupper()
    }


@pytest.mark.parametrize("name", sorted(parts() - ABOUT_THE_DATABASE.keys() - NOT_YET))
def test_a_unit_test_builds_it_by_hand(name: str) -> None:
    assert name in built_by_hand(), f"build {name} from fakes in a test under {UNIT_TESTS[0]}"


def test_what_has_its_unit_test_leaves_the_list() -> None:
    assert NOT_YET & built_by_hand() == set()


def test_the_lists_name_parts_that_there_are() -> None:
    assert NOT_YET | ABOUT_THE_DATABASE.keys() <= parts()
