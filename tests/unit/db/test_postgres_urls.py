"""Addresses of PostgreSQL in the forms that libpq takes and hosts of databases hand out."""

from typing import Any

import asyncpg
import pytest
from asyncpg import connect_utils

from msgsvc_core.db.postgres_urls import checked, connect_arguments
from msgsvc_devkit.databases import postgres_url


def _parsed(url: str) -> tuple[list[object], Any]:
    """What asyncpg makes of the URL: addresses and parameters."""
    parse: Any = vars(connect_utils)["_parse_connect_dsn_and_args"]
    arguments = connect_arguments(checked(url))
    addresses, parameters = parse(
        **dict.fromkeys(
            [
                "host",
                "port",
                "user",
                "password",
                "passfile",
                "database",
                "service",
                "servicefile",
                "direct_tls",
                "server_settings",
                "target_session_attrs",
                "krbsrvname",
                "gsslib",
            ]
        ),
        dsn=arguments["dsn"],
        ssl=arguments.get("ssl"),
    )
    return addresses, parameters


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("postgres://me:secret@db.example/shop", ("db.example", 5432)),
        ("postgresql://me@db.example:6543/shop?sslmode=disable", ("db.example", 6543)),
        (
            "postgresql:///shop?host=/var/run/postgresql&user=me",
            "/var/run/postgresql/.s.PGSQL.5432",
        ),
        ("postgres://me@/shop?host=/run/pg&port=5433", "/run/pg/.s.PGSQL.5433"),
        ("postgresql://me@%2Frun%2Fpg/shop", "/run/pg/.s.PGSQL.5432"),
        ("postgresql://me@[::1]:5433/shop", ("::1", 5433)),
        ("postgres://db.example?dbname=shop&user=me", ("db.example", 5432)),
        ("postgres://me@db.example/shop?pgbouncer=true&connect_timeout=10", ("db.example", 5432)),
        ("postgres://me@db.example/shop?channel_binding=prefer", ("db.example", 5432)),
    ],
)
def test_every_form_of_an_address_is_taken(url: str, address: object) -> None:
    addresses, parameters = _parsed(url)

    assert addresses == [address]
    assert (parameters.user, parameters.database) == ("me", "shop")
    assert not parameters.server_settings


def test_several_hosts_are_tried_in_their_order() -> None:
    addresses, parameters = _parsed(
        "postgres://me@a.example:1,b.example/shop?target_session_attrs=read-write"
    )

    assert addresses == [("a.example", 1), ("b.example", 5432)]
    assert parameters.target_session_attrs.value == "read-write"


@pytest.mark.parametrize(
    ("query", "mode"),
    [
        ("", "prefer"),
        ("?sslmode=require", "require"),
        ("?ssl=require", "require"),
        ("?ssl=false", "disable"),
        ("?sslrootcert=system", "verify_full"),
        ("?sslmode=verify-full&sslrootcert=system", "verify_full"),
    ],
)
def test_encryption_is_asked_for_by_either_name(query: str, mode: str) -> None:
    _, parameters = _parsed(f"postgres://me@db.example/shop{query}")

    assert parameters.sslmode.name == mode


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgres://h/d?sslmode=maybe", "sslmode=maybe: must be one of disable, allow"),
        ("postgres://h/d?channel_binding=require", "sslmode=verify-full also proves who"),
        ("postgres://h/d?gssencmode=require", "sslmode=require"),
        ("postgres://h/d?pool_size=5", "takes no pool_size; "),
        ("postgres://h/d?sslmode", r"\?name=value&name=value"),
        ("postgres://me:pa#ss@h/d", "%23"),
        ("postgres://me:p/w@h/d", "percent-encoded"),
        ("postgres://me:p@w@h/d", "percent-encoded"),
        ("postgres://h:99999/d", "host or port"),
        ("postgres://a:1,b:x/d", "host or port"),
        ("postgres:///d?host=h&port=x", "host or port"),
    ],
)
def test_what_could_not_connect_is_refused_with_the_reason(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        checked(url)


async def test_the_options_of_a_url_reach_the_server() -> None:
    url = checked(f"{postgres_url()}?options=-c%20search_path%3Delsewhere&sslmode=prefer")
    try:
        connection = await asyncpg.connect(**connect_arguments(url))
    except OSError:
        pytest.skip("PostgreSQL does not answer")
    found = await connection.fetchval("SHOW search_path")
    await connection.close()

    assert found == "elsewhere"
