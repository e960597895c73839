"""Many rows of what pages alone list: accounts and projects, the audit log, ledgers, attempts to sign in."""

from collections.abc import Mapping

from msgsvc_core.db import Tx
from tests.api.lists.filling import START_MS, id_column, in_turn, insert

_AT = f"{START_MS} + CAST(i AS bigint) * 1000"
_MADE = {"created_at_ms": _AT}
_OF_PROJECT = {"project_id": ":project_id"}
_TIMES = {**_MADE, "updated_at_ms": "0"}

#: Accounts for each row of another table: fewer lie on so few pages that PostgreSQL reads all of them, and
#: rightly, rather than look up the fifty of a page by their index.
ACCOUNTS = 2

#: What others belong to comes before them.
_TABLES: Mapping[str, Mapping[str, str]] = {
    "dashboard_accounts": {
        "account_id": id_column("acc"),
        "email": "'ann' || CAST(i AS text) || '@shop.example'",
        "name": "'Ann'",
        "status": "'active'",
        "is_operator": "i < 0",
        **_MADE,
    },
    "core_projects": {
        "project_id": id_column("prj"),
        "account_id": id_column("acc"),
        "name": "'Shop'",
        "status": "'active'",
        **_MADE,
    },
    "billing_accounts": {
        "account_id": id_column("acc"),
        "plan": "'pro'",
        "period_ends_ms": f"{START_MS} * 2",
        **dict.fromkeys(
            (
                *("anchor_ms", "period_started_ms", "granted", "used", "packs"),
                *("took_allowance", "took_packs"),
            ),
            "0",
        ),
    },
    "billing_ledger": {
        "account_id": ":account_id",
        "entry_id": id_column("led"),
        "project_id": "CASE WHEN i > 3 THEN CAST(:project_id AS text) END",
        "operation": in_turn(["grant", "pack"], "message"),
        "resource_id": "CAST(i AS text)",
        "quantity": "1",
        **dict.fromkeys(("allowance", "packs", "unpaid"), "0"),
        "note": "''",
        "at_ms": _AT,
    },
    "dashboard_audit": {
        **_OF_PROJECT,
        "entry_id": id_column("aud"),
        "account_id": "CASE WHEN i > 3 THEN CAST(:account_id AS text) END",
        "at_ms": _AT,
        "action": "'helpdesk.reply'",
        "detail": "'{}'",
        "ip": "'127.0.0.1'",
    },
    "auth_sessions": {
        **_OF_PROJECT,
        "session_id": id_column("ses"),
        "token_digest": "'digest-' || CAST(i AS text)",
        "status": in_turn(["confirmed"], "expired"),
        "state": "'s'",
        "expires_at_ms": "1",
        **_MADE,
    },
    "oidc_clients": {
        **_OF_PROJECT,
        "client_id": id_column("app"),
        "name": "'Grafana'",
        **dict.fromkeys(
            ("redirect_uris", "post_logout_redirect_uris", "grant_types", "scopes"), "'[]'"
        ),
        "auth_method": "'none'",
        "subject_type": "'public'",
        "signing_alg": "'RS256'",
        **dict.fromkeys(("first_party", "number_matching", "require_pushed", "dynamic"), "i < 0"),
        **_MADE,
    },
    "oidc_sign_ins": {
        **_OF_PROJECT,
        "entry_id": id_column("osi"),
        "client_id": id_column("app", "1"),
        "flow": "'code'",
        "outcome": in_turn(["access_denied"], "signed_in"),
        "detail": "''",
        "subscriber_id": id_column("sub"),
        "at_ms": _AT,
    },
    "oidc_logout_deliveries": {
        **_OF_PROJECT,
        "delivery_id": id_column("old"),
        "client_id": id_column("app", "1"),
        "subject": "'sub'",
        "status": in_turn(["failed"], "delivered"),
        "attempts": "1",
        "error": "''",
        **_MADE,
    },
    "otp_codes": {
        **_OF_PROJECT,
        "otp_id": id_column("otp"),
        "status": in_turn(["verified"], "expired"),
        "purpose": "'login'",
        "subscriber_id": id_column("sub"),
        **dict.fromkeys(("length", "ttl_minutes", "max_attempts", "attempts"), "1"),
        "expires_at_ms": "1",
        **_MADE,
    },
    "helpdesk_canned_answers": {
        **_OF_PROJECT,
        "key": "'key-' || CAST(10000000 + i AS text)",
        "canned_answer_id": id_column("can"),
        "title": "'Hi'",
        "content": '\'{"text": "Hi"}\'',
        **_TIMES,
    },
    "core_routes": {
        **_OF_PROJECT,
        "route_id": id_column("rte"),
        "name": "'Route ' || CAST(10000000 + i AS text)",
        "steps": '\'[{"channel": "messenger_a"}]\'',
        "version": "1",
        **_TIMES,
    },
    "core_shelf": {
        "item_id": id_column("shg"),
        # A shelf holds no more.
        "channel": "CASE WHEN i < 500 THEN 'messenger_a' ELSE 'chn_' || CAST(i / 500 AS text) END",
        "update_id": "CAST(i AS text)",
        "kind": "'update'",
        "reason": "'malformed'",
        "detail": "''",
        "origin": "''",
        "size": "1",
        "kept": "1",
        "sealed": "''",
        "received_at_ms": "0",
    },
    "core_templates": {
        **_OF_PROJECT,
        "key": "'key-' || CAST(10000000 + i AS text)",
        "template_id": id_column("tpl"),
        "content": '\'{"text": "Hi"}\'',
        **_TIMES,
    },
}


async def fill_pages(tx: Tx, project_id: str, account_id: str, count: int) -> None:
    """Writes the rows, after those of the API's lists. `account_id` is who owns the project."""
    given = {"project_id": project_id, "account_id": account_id}
    for table, columns in _TABLES.items():
        if table == "billing_ledger":
            owners = {**_TABLES["billing_accounts"], "account_id": ":account_id"}
            await insert(tx, "billing_accounts", owners, given, 1)
        await insert(
            tx, table, columns, given, count * ACCOUNTS if table == "dashboard_accounts" else count
        )
