"""Words of a dialect that nobody could search the web for: they have gone, and must not come back.

Right of each is the standard term. Add a word here when it has gone everywhere.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import (
    CORE,
    ROOT,
    assert_none,
    files_in,
    modules,
    name_of,
    source_of,
    tree_of,
)

#: Classes, and functions of modules.
NAMES = {
    "Line": "OutboundGate",
    "Lines": "OutboundGates",
    "Turns": "FifoKeyLock",
    "Order": "RetryOrder",
    "Uses": "ChannelRefCounts",
    "Follower": "ChannelSync",
    "OwnChannels": "ProjectChannels",
    "Reception": "BotReceiver",
    "Together": "TransactionBatcher",
    "Lookup": "DataLoader",
    "Lookups": "HostResolver",
    "Standing": "HostClass",
    "Unit": "WriteBatch",
    "Taken": "UniqueViolation, Debit",
    "Undone": "Deadlock",
    "Ear": "NotificationListener",
    "PostgresEar": "PostgresListener",
    "Heard": "Callback",
    "Notices": "Notifications",
    "Room": "Capacity",
    "PutBack": "Reschedule",
    "PutOff": "Postponed",
    "Letter": "JobView, RecipientDelivery",
    "Post": "SendContext",
    "Way": "MailingShard, AnswerPath",
    "Judged": "PreparedMessage",
    "Ending": "FinalStatus",
    "Deadlines": "TimeoutPool",
    "Edge": "EndpointDispatcher",
    "Guard": "ConnectionLimits, OutboundGuard",
    "CorkedTransport": "BufferedTransport",
    "Moved": "Redirect",
    "Answer": "ResponseModel",
    "Body": "RequestModel",
    "Kept": "RetentionRule",
    "Held": "BrowserSignIn",
    "Openings": "SessionLimits",
    "Course": "DripDefinition",
    "Chain": "Drip",
    "Lead": "RoutingResult",
    "Leading": "SubmissionRouter",
    "Anew": "Restart",
    "Tell": "Say",
    "Ask": "Prompt",
    "Answered": "AgentReply",
    "Told": "AgentMessage",
    "record": "value_object",
    "spread": "yield_every",
    "told_to_wait": "as_rate_limited",
    "again_if_undone": "retry_on_deadlock",
    "among": "in_array",
    "some_of": "limited_delete",
    "in_turn": "await_in_order",
    "moment_of": "to_datetime",
    "kept_rows": "retention_rules",
    "hold": "lock",
    "bury": "dead_letter",
    "put_off": "list_postponed",
    "give_back": "release, refund",
}

#: Methods, as `method` or `Class.method`.
METHODS = {
    "hold": "lock",
    "bury": "dead_letter",
    "hear": "receive_customer_message",
    "all_of": "list_all",
    "come_back": "resubscribe",
    "ask_few": "read_inline",
    "own_tx": "optional_tx",
    "find_named": "get_by_identifier",
    "leave_unclaimed": "handle_unclaimed",
    "begin_again": "restart",
    "begin_stop": "begin_shutdown",
    "take_some": "run_batch",
    "let_go": "unassign_left",
    "Channels.of": "resolve",
    "Channels.use": "borrow",
    "TransactionBatcher.do": "submit",
    "TimeoutPool.within": "timeout",
    "Tx.tell": "notify",
    "WriteBatch.claim": "require_new",
    "Subscribers.leave": "unsubscribe",
    "Subscribers.receiver": "get_recipient",
    "Subscribers.find": "get",
    "Projects.find": "get",
    "Members.find": "get",
    "Files.find": "get",
    "Files.keep": "retain",
    "Tags.give": "assign",
}

#: Parameters, attributes of classes and fields.
PARAMETERS = {
    "few": "inline",
    "on_disk": "durable",
    "own_tx": "optional_tx",
    "grouped": "group_commit",
    "shares_transaction": "batched_transaction",
    "heard": "callback, message",
    "said": "the noun it stands for",
}

#: Modules, by their last name.
MODULES = {
    "together": "transaction_batcher",
    "lookup": "data_loader",
    "lookups": "dns",
    "unit": "write_batch",
    "again": "retrying",
    "notices": "notifications",
    "lines": "outbound",
    "turns": "ordering",
    "uses": "ref_counts",
    "letters": "deliveries",
    "burial": "dead_letters",
    "judging": "validation",
    "filing": "indexing",
    "changing": "edit_job",
    "traces": "erasure",
    "forgetting": "erasure",
    "findings": "validation_messages",
    "following": "sync",
    "cork": "buffered_transport",
    "openings": "session_limits",
    "taking": "step_runner",
    "course": "definition, question_flow",
    "leading": "submission_router",
}

#: Modules of that name that hold what it says: a page's notices, pages that follow a broadcast.
MODULES_THAT_STAY = {"msgsvc_dashboard/frame/notices.py", "dashboard/following.py"}

#: What comments and docstrings must not say, as expressions, with what to write.
PHRASES = {
    r"\bthe door of\b|\bplugin's door\b": "hook implementations",
    r"\bas if alone\b|\bin truth\b": "coalesces concurrent calls",
    r"\bhears? of\b": "receives, is notified",
    r"\bwhat a bot says by itself\b|\bthe bot says by itself\b": "system messages",
    r"\bputs? aside\b|\bput aside\b": "snooze",
    r"\b(is|are|was|were) (mended|buried)\b": "fixed, dead-lettered",
    r"\bin (its|their|our|nobody's) hands\b|\bhas in hand\b": "in flight, claimed",
    r"\bbegun anew\b|\bbegins? anew\b": "restart, retry",
    r"\bwho sends many\b|\bwho wants to write\b|\bwhoever asked\b": "the sender, the writer, the caller",
}

#: Phrases of pages, bots, commands and docs, and what to say in their place.
TEXT_PHRASES = {
    r"\b[Cc]hains? of messages\b": "drip campaign",
    r"\b(?:[Nn]ew|[Cc]hange the|[Dd]elete the|[Bb]ack to the) chain\b": "drip campaign",
    r"\b[Mm]essages at a time\b": "scheduled messages",
    r"\b[Aa]gain and again\b": "recurring, repeatedly",
    r"\b[Pp]ut(?:s|ting)? (?:it )?aside\b": "snooze",
    r"\b(?:[Nn]obody's|[Ee]verybody's)\b": "unassigned, all",
    r"\b[Nn]obody has it\b": "unassigned",
    r"\b[Tt]ake it\b": "assign to me",
    r"\bWaits \{": "Waiting {time}",
    r"\b[Mm]end(?:s|ed|ing)?\b": "fix",
    r"\b[Hh]ears? of\b": "receive, be notified",
    r"\b[Oo]n (?:its|their) way\b": "being sent, pending",
    r"\bTaken for spam\b": "marked as spam",
    r"Цепочк|цепочк": "кампания",
    r"\b[Нн]ичь[иёе]": "без исполнителя",
}

#: Phrases that only pages for readers must not have: comments in the code still do.
PAGE_PHRASES = {
    r"\b[Ee]-mail\b": "email",
    r"\b[Ww]hoever\b(?! can\b)|\b[Ss]omebody\b": "the user, the caller, anyone who",
    r"\bby itself alone\b|\ball the same\b": "a plain sentence",
    r"\b(?:made|set|started?|begin|begun) anew\b": "again, restart",
    r"\bpeople who operate\b|\bspoken for\b": "operators",
}


def _definitions(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(kind, name) of what a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield "name", node.name
            for part in node.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield "method", f"{node.name}.{part.name}"
                elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    yield "parameter", part.target.id
        elif isinstance(node, ast.arg):
            yield "parameter", node.arg
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield "name", node.name


def _standard(kind: str, name: str) -> str | None:
    if kind == "name":
        return NAMES.get(name)
    if kind == "parameter":
        return PARAMETERS.get(name)
    return METHODS.get(name) or METHODS.get(name.partition(".")[2])


#: Comments and docstrings as they look, and a few other texts. It is 40 times quicker than `_prose`.
_LIKELY_PROSE = re.compile(r'#.*|"""(?s:.*?)"""')


def _prose(path: Path) -> Iterator[str]:
    """Docstrings and comments, each on one line."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield " ".join((ast.get_docstring(node) or "").split())
    for token in tokenize.generate_tokens(io.StringIO(source_of(path)).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def test_no_name_in_the_code_is_of_the_dialect() -> None:
    # The class of a method that is refused in that class alone, or the name itself.
    words = "|".join({*NAMES, *(name.partition(".")[0] for name in METHODS)})
    named = re.compile(rf"(?:class|def) (?:{words})\b|\b(?:{'|'.join(PARAMETERS)})\s*[:=,)]")
    found = [
        f"{name_of(path)}: {name}, say {standard}"
        for path in modules()
        if named.search(source_of(path))
        for kind, name in _definitions(tree_of(path))
        if (standard := _standard(kind, name))
    ]

    assert_none(found)


def test_no_module_is_named_in_the_dialect() -> None:
    found = [
        f"{name_of(path)}, say {MODULES[path.stem]}"
        for path in modules()
        if path.stem in MODULES
        and "cli" not in path.parts
        and not any(path.as_posix().endswith(name) for name in MODULES_THAT_STAY)
    ]

    assert_none(found)


def test_no_comment_speaks_the_dialect() -> None:
    phrases = PHRASES | TEXT_PHRASES
    patterns = [re.compile(phrase, re.IGNORECASE) for phrase in phrases]
    found = [
        f"{name_of(path)}: {text[:80]!r}, say {standard}"
        for path in modules()
        if (likely := " ".join(" ".join(_LIKELY_PROSE.findall(source_of(path))).split()))
        and any(pattern.search(likely) for pattern in patterns)
        for text in _prose(path)
        for phrase, standard in phrases.items()
        if re.search(phrase, text, re.IGNORECASE)
    ]

    assert_none(found)


def test_what_people_read_is_in_standard_terms() -> None:
    # What people read first. The reference and the decisions' texts quote the code and the past.
    pages = [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs" / "guides").glob("*.md"),
    ]
    catalogues = [*files_in(CORE, ".po"), *files_in(ROOT / "plugins", ".po")]
    # Without blocks of code, names within a line and targets of links: a test's name may say anything.
    code = re.compile(r"(?ms)^```.*?^```$|`[^`\n]*`|\]\([^)]*\)")
    texts = {path: code.sub("", source_of(path)) for path in pages}
    texts |= {path: source_of(path) for path in catalogues}
    found = [
        f"{name_of(path)}: {match[0]!r}, say {instead}"
        for path, text in texts.items()
        for phrase, instead in (
            TEXT_PHRASES | (PAGE_PHRASES if path in pages else {r"\be-mail\b": "email"})
        ).items()
        for match in re.finditer(phrase, text)
    ]

    assert len(texts) > 60
    assert_none(found)
