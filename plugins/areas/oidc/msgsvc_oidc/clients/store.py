"""The SQL of clients and their secrets."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import in_list, key_params, key_table
from msgsvc_core.kernel.json import from_json, to_json
from msgsvc_oidc.protocol.clients import Client, ClientSecret

#: A client's project and id.
Key = tuple[str, str]

#: A client with its valid and expired secrets.
Found = tuple[Client, Sequence[ClientSecret]]

_CLIENT = (
    "project_id, client_id, name, redirect_uris, post_logout_redirect_uris, backchannel_logout_uri,"
    " auth_method, jwks, jwks_uri, jwks_asked_at_ms, grant_types, scopes, first_party, number_matching,"
    " must_prove, require_pushed, claims_in_id_token, introspects, subject_type, signing_alg, home_url,"
    " dynamic, created_at_ms"
)
_CLIENT_IN_JOIN = ", ".join(f"c.{column}" for column in _CLIENT.split(", "))

#: Columns that hold lists as JSON.
_LISTS = (
    *("redirect_uris", "post_logout_redirect_uris", "grant_types", "scopes", "must_prove"),
    "introspects",
)

_FLAGS = ("first_party", "number_matching", "require_pushed", "claims_in_id_token", "dynamic")


async def insert_client(tx: Tx, client: Client, *, registration_digest: str | None = None) -> None:
    values: dict[str, Any] = {column: getattr(client, column) for column in _CLIENT.split(", ")}
    await tx.insert(
        "oidc_clients",
        {**_stored(values), "registration_digest": registration_digest},
    )


async def update_client(tx: Tx, client: Client) -> bool:
    """Writes all that can change; False if it was deleted."""
    columns = [
        column
        for column in _CLIENT.split(", ")
        if column not in {"project_id", "client_id", "created_at_ms", "dynamic", "jwks_asked_at_ms"}
    ]
    values = _stored({column: getattr(client, column) for column in columns})
    changes = ", ".join(f"{column} = :{column}" for column in columns)
    return bool(
        await tx.execute(
            f"UPDATE oidc_clients SET {changes}"
            " WHERE project_id = :project_id AND client_id = :client_id",
            {**values, "project_id": client.project_id, "client_id": client.client_id},
        )
    )


async def delete_client(tx: Tx, project_id: str, client_id: str) -> bool:
    return bool(
        await tx.execute(
            "DELETE FROM oidc_clients WHERE project_id = :project_id AND client_id = :client_id",
            {"project_id": project_id, "client_id": client_id},
        )
    )


async def list_introspecting(tx: Tx, project_id: str) -> list[Client]:
    """The clients that may introspect tokens of others."""
    rows = await tx.fetch_all(
        f"SELECT {_CLIENT} FROM oidc_clients"
        " WHERE project_id = :project_id AND introspects <> '[]' ORDER BY client_id",
        {"project_id": project_id},
    )
    return [_client(row) for row in rows]


async def set_introspects(tx: Tx, key: Key, introspects: Sequence[str]) -> None:
    await tx.execute(
        "UPDATE oidc_clients SET introspects = :introspects"
        " WHERE project_id = :project_id AND client_id = :client_id",
        {"project_id": key[0], "client_id": key[1], "introspects": to_json(list(introspects))},
    )


async def existing_clients(tx: Tx, project_id: str, client_ids: Sequence[str]) -> set[str]:
    """Those of the ids that are clients of the project. `client_ids` is not empty."""
    ids, params = in_list("ids", client_ids)
    rows = await tx.fetch_all(
        f"SELECT client_id FROM oidc_clients WHERE project_id = :project_id AND client_id IN {ids}",
        {**params, "project_id": project_id},
    )
    return {row["client_id"] for row in rows}


async def count_clients(tx: Tx, project_id: str) -> int:
    return int(
        await tx.fetch_val(
            "SELECT count(*) FROM oidc_clients WHERE project_id = :project_id",
            {"project_id": project_id},
        )
    )


async def find_client(tx: Tx, project_id: str, client_id: str) -> Client | None:
    row = await tx.fetch_one(
        f"SELECT {_CLIENT} FROM oidc_clients"
        " WHERE project_id = :project_id AND client_id = :client_id",
        {"project_id": project_id, "client_id": client_id},
    )
    return None if row is None else _client(row)


async def lock_client(tx: Tx, key: Key) -> None:
    """Has other changes of the client wait until the transaction ends."""
    await tx.lock(f"oidc.client {key[1]}")


async def ask_for_keys(tx: Tx, key: Key, *, now_ms: int, before_ms: int) -> bool:
    """Records that a client's keys are asked for; False if they were after `before_ms`: of concurrent calls
    one gets True."""
    return bool(
        await tx.execute(
            "UPDATE oidc_clients SET jwks_asked_at_ms = :now_ms"
            " WHERE project_id = :project_id AND client_id = :client_id AND jwks_uri IS NOT NULL"
            " AND (jwks_asked_at_ms IS NULL OR jwks_asked_at_ms <= :before_ms)",
            {
                "project_id": key[0],
                "client_id": key[1],
                "now_ms": now_ms,
                "before_ms": before_ms,
            },
        )
    )


async def set_keys(tx: Tx, key: Key, jwks_uri: str, jwks: Mapping[str, Any]) -> None:
    """Writes the keys that were fetched, unless the client has another URL by now."""
    await tx.execute(
        "UPDATE oidc_clients SET jwks = :jwks WHERE project_id = :project_id"
        " AND client_id = :client_id AND jwks_uri = :jwks_uri",
        {
            "project_id": key[0],
            "client_id": key[1],
            "jwks_uri": jwks_uri,
            "jwks": to_json(dict(jwks)),
        },
    )


async def find_registration_digest(tx: Tx, project_id: str, client_id: str) -> str | None:
    """Of the token by which a client manages its registration; None for one that did not register itself."""
    found: str | None = await tx.fetch_val(
        "SELECT registration_digest FROM oidc_clients"
        " WHERE project_id = :project_id AND client_id = :client_id",
        {"project_id": project_id, "client_id": client_id},
    )
    return found


async def find_clients(tx: Tx, keys: Sequence[Key]) -> Mapping[Key, Found]:
    """Existing clients with their secrets, by project and id. `keys` is not empty."""
    rows = await tx.fetch_all(
        f"SELECT {_CLIENT_IN_JOIN}, s.secret_id, s.digest, s.created_at_ms AS secret_created_at_ms,"
        f" s.expires_at_ms FROM {key_table(('project_id', 'client_id'), tx.dialect)}"
        " CROSS JOIN oidc_clients c LEFT JOIN oidc_client_secrets s"
        " ON s.project_id = c.project_id AND s.client_id = c.client_id"
        " WHERE c.project_id = keys.project_id AND c.client_id = keys.client_id",
        key_params(keys, tx.dialect),
    )
    found: dict[Key, tuple[Client, list[ClientSecret]]] = {}
    for row in rows:
        key = (row["project_id"], row["client_id"])
        if key not in found:
            found[key] = (_client(row), [])
        if row["secret_id"] is not None:
            found[key][1].append(_secret(row, row["secret_created_at_ms"]))
    return found


async def list_clients(tx: Tx, project_id: str, after: str | None, limit: int) -> list[Client]:
    """Newest first; `after` is the last `client_id` of the previous page."""
    rows = await tx.fetch_all(
        f"SELECT {_CLIENT} FROM oidc_clients WHERE project_id = :project_id"
        + (" AND client_id < :after" if after is not None else "")
        + " ORDER BY client_id DESC LIMIT :most",
        {"project_id": project_id, "after": after, "most": limit},
    )
    return [_client(row) for row in rows]


async def list_secrets(tx: Tx, project_id: str, client_id: str, now_ms: int) -> list[ClientSecret]:
    """The valid secrets, newest first."""
    rows = await tx.fetch_all(
        "SELECT secret_id, digest, created_at_ms, expires_at_ms FROM oidc_client_secrets"
        " WHERE project_id = :project_id AND client_id = :client_id"
        " AND (expires_at_ms IS NULL OR expires_at_ms > :now_ms) ORDER BY secret_id DESC",
        {"project_id": project_id, "client_id": client_id, "now_ms": now_ms},
    )
    return [_secret(row, row["created_at_ms"]) for row in rows]


async def insert_secret(tx: Tx, key: Key, secret: ClientSecret) -> None:
    await tx.insert(
        "oidc_client_secrets",
        {
            "project_id": key[0],
            "client_id": key[1],
            "secret_id": secret.secret_id,
            "digest": secret.digest,
            "created_at_ms": secret.created_at_ms,
            "expires_at_ms": secret.expires_at_ms,
        },
    )


async def expire_secrets(tx: Tx, key: Key, *, keeps: str, at_ms: int) -> None:
    """Has all secrets but one end at that time; those that end earlier do."""
    await tx.execute(
        "UPDATE oidc_client_secrets SET expires_at_ms = :at_ms"
        " WHERE project_id = :project_id AND client_id = :client_id AND secret_id <> :keeps"
        " AND (expires_at_ms IS NULL OR expires_at_ms > :at_ms)",
        {"project_id": key[0], "client_id": key[1], "keeps": keeps, "at_ms": at_ms},
    )


async def delete_secrets(tx: Tx, key: Key, *, keeps: Sequence[str]) -> None:
    """Deletes all secrets but those."""
    for secret in await list_secrets(tx, *key, now_ms=0):
        if secret.secret_id not in keeps:
            await delete_secret(tx, key, secret.secret_id)


async def delete_secret(tx: Tx, key: Key, secret_id: str) -> bool:
    return bool(
        await tx.execute(
            "DELETE FROM oidc_client_secrets WHERE project_id = :project_id"
            " AND client_id = :client_id AND secret_id = :secret_id",
            {"project_id": key[0], "client_id": key[1], "secret_id": secret_id},
        )
    )


async def use_assertion(tx: Tx, key: Key, assertion_id: str, expires_at_ms: int) -> bool:
    """False for an assertion that was used before."""
    return bool(
        await tx.execute(
            "INSERT INTO oidc_assertions (project_id, client_id, assertion_id, expires_at_ms)"
            " VALUES (:project_id, :client_id, :assertion_id, :expires_at_ms)"
            " ON CONFLICT DO NOTHING",
            {
                "project_id": key[0],
                "client_id": key[1],
                "assertion_id": assertion_id,
                "expires_at_ms": expires_at_ms,
            },
        )
    )


def _stored(values: dict[str, Any]) -> dict[str, Any]:
    for column in _LISTS:
        values[column] = to_json(list(values[column]))
    jwks = values["jwks"]
    values["jwks"] = None if jwks is None else to_json(dict(jwks))
    return values


def _client(row: Row) -> Client:
    fields: dict[str, Any] = {column: row[column] for column in _CLIENT.split(", ")}
    for column in _LISTS:
        fields[column] = tuple(from_json(fields[column]))
    for column in _FLAGS:
        # SQLite keeps 0 and 1.
        fields[column] = bool(fields[column])
    if fields["jwks"] is not None:
        fields["jwks"] = from_json(fields["jwks"])
    return Client(**fields)


def _secret(row: Row, created_at_ms: int) -> ClientSecret:
    return ClientSecret(
        secret_id=row["secret_id"],
        digest=row["digest"],
        created_at_ms=created_at_ms,
        expires_at_ms=row["expires_at_ms"],
    )
