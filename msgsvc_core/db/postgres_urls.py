"""URLs of PostgreSQL in the forms that libpq takes and hosts of databases hand out.

`postgres://`, several hosts, `?host=/run/postgresql`, `?sslmode=require`: see "Connection URIs" and
"Parameter Key Words" in the documentation of libpq. Nothing here loads asyncpg.
"""

import re
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

SCHEMES = ("postgresql://", "postgres://")

#: Parameters that asyncpg applies, or passes to the server (`options`).
TAKEN = frozenset(
    {
        *("host", "port", "dbname", "user", "password", "passfile", "service", "options"),
        *("sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslpassword", "sslnegotiation"),
        *("ssl_min_protocol_version", "ssl_max_protocol_version"),
        *("target_session_attrs", "krbsrvname", "gsslib"),
    }
)

#: Parameters whose place the service takes: it names its sessions, sets timeouts for every operation, talks
#: UTF-8, and finds out by itself whether a pooler answers (`pgbouncer=true` is handed out with its address).
LEFT_TO_US = frozenset(
    {
        *("application_name", "fallback_application_name", "client_encoding", "connect_timeout"),
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
        *("tcp_user_timeout", "pgbouncer"),
    }
)

#: Parameters of which asyncpg can't do everything: the values that ask for nothing more, and what to do
#: instead.
IN_PART = {
    "channel_binding": (
        {"disable", "prefer"},
        "the driver has no channel binding; sslmode=verify-full also proves who the server is",
    ),
    "gssencmode": ({"disable", "prefer"}, "the driver encrypts by TLS only: sslmode=require"),
    "sslcompression": ({"0"}, "TLS connections are never compressed"),
}

_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")

#: What `ssl` of earlier releases takes beside the modes of `sslmode`: whether to use TLS at all, and then
#: with a certificate that the system's authorities have signed.
_SSL = {"true": True, "false": False}

_PORT = re.compile(r"\d{1,5}", re.ASCII)

_UNREADABLE = (
    "its host or port can't be read; is the password percent-encoded"
    " (`@` is %40, `:` is %3A, `/` is %2F)?"
)


def is_postgres(url: str) -> bool:
    return url.startswith(SCHEMES)


def checked(url: str) -> str:
    """The URL, beginning with `postgresql://`. Raises ValueError, without the URL, for one with which the
    driver would fail only when it connects."""
    url = f"postgresql://{url.split('://', 1)[1]}"
    parts = urlsplit(url)
    if parts.fragment:
        raise ValueError("a `#` ends the URL: write %23 in a password")
    given = _parameters(parts.query)
    for name, value in given.items():
        _check_parameter(name, value)
    # The driver ends the password at the first `@`.
    if parts.netloc.count("@") > 1:
        raise ValueError(_UNREADABLE)
    for host in parts.netloc.rpartition("@")[2].split(","):
        _check_ports(re.sub(r"^\[[^\]]*\]", "", host).partition(":")[2])
    _check_ports(given.get("port", ""))
    return url


def connect_arguments(url: str) -> dict[str, Any]:
    """Arguments of `asyncpg.connect` and `create_pool` for a URL that is `checked`."""
    parts = urlsplit(url)
    given = _parameters(parts.query)
    arguments: dict[str, Any] = {}
    if given.get("sslrootcert") == "system":
        # libpq: the system's authorities, and no weaker check than that of the host's name.
        del given["sslrootcert"]
        given.pop("sslmode", None)
        arguments["ssl"] = True
    if "ssl" in given:
        mode = given.pop("ssl").lower()
        arguments["ssl"] = _SSL.get(mode, mode)
    query = urlencode({name: value for name, value in given.items() if name in TAKEN})
    # As text: `SplitResult` would make `postgresql:/name` of a URL without a host.
    bare = url.split("?", 1)[0]
    return {"dsn": f"{bare}?{query}" if query else bare, **arguments}


def _parameters(query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, strict_parsing=True)) if query else {}
    except ValueError:
        raise ValueError("its parameters can't be read: ?name=value&name=value") from None


def _check_parameter(name: str, value: str) -> None:
    if name == "ssl":
        if value.lower() not in {*_SSL, *_SSL_MODES}:
            raise ValueError(f"ssl={value}: must be true, false or one of {', '.join(_SSL_MODES)}")
    elif name == "sslmode":
        if value not in _SSL_MODES:
            raise ValueError(f"sslmode={value}: must be one of {', '.join(_SSL_MODES)}")
    elif name in IN_PART:
        values, instead = IN_PART[name]
        if value not in values:
            raise ValueError(f"{name}={value} can't be had: {instead}")
    elif name not in TAKEN | LEFT_TO_US:
        raise ValueError(
            f"takes no {name}; `?sslmode=require` encrypts the connection, and `database_pool` sets its size"
        )


def _check_ports(text: str) -> None:
    for port in text.split(","):
        if port and not (_PORT.fullmatch(port) and 0 < int(port) <= 65_535):
            raise ValueError(_UNREADABLE)
