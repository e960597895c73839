"""Words of a dialect that nobody could search the web for: they have gone, and must not come back.

Right of each is the standard term. What is still left of the dialect is not listed yet.
"""

import ast
from pathlib import Path

CORE = Path(__file__).parents[2] / "msgsvc_core"

#: Classes and functions of the core.
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
    "Unit": "WriteBatch",
    "Taken": "UniqueViolation",
    "Undone": "Deadlock",
    "Ear": "NotificationListener",
    "Notices": "Notifications",
    "Room": "Capacity",
    "PutBack": "Reschedule",
    "Letter": "JobView, RecipientDelivery",
    "Post": "SendContext",
    "Way": "MailingShard",
    "Judged": "PreparedMessage",
    "Ending": "FinalStatus",
    "Deadlines": "TimeoutPool",
    "Edge": "EndpointDispatcher",
    "Moved": "Redirect",
    "Answer": "ResponseModel",
    "Body": "RequestModel",
    "record": "value_object",
    "spread": "yield_every",
    "told_to_wait": "as_rate_limited",
    "again_if_undone": "retry_on_deadlock",
    "among": "in_array",
    "some_of": "limited_delete",
    "in_turn": "await_in_order",
}

#: Modules of the core, by their last name.
MODULES = {
    "together": "transaction_batcher",
    "lookup": "data_loader",
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
    "findings": "validation_messages",
}


def test_no_name_of_the_core_is_of_the_dialect() -> None:
    found = []
    for path in sorted(CORE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if named and node.name in NAMES:
                found.append(f"{path.relative_to(CORE)}: {node.name}, say {NAMES[node.name]}")

    assert found == []


def test_no_module_of_the_core_is_named_in_the_dialect() -> None:
    found = [
        f"{path.relative_to(CORE)}, say {MODULES[path.stem]}"
        for path in sorted(CORE.rglob("*.py"))
        if path.stem in MODULES and not {"cli", "testing"} & set(path.parts)
    ]

    assert found == []
