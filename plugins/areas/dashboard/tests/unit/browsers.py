"""Requests as a browser sends them, and pages as a handler gets them, without a server."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import Response

from msgsvc_core.dashboard import PageContext, PostedForm
from msgsvc_core.db import Tx
from msgsvc_core.members import Role
from msgsvc_core.projects.models import Project
from msgsvc_dashboard.accounts import Account, AccountSession
from msgsvc_devkit.core import PROJECT, MemoryCore

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

ANN = Account(
    account_id="acc_ann",
    email="ann@shop.example",
    name="Ann Lee",
    is_operator=False,
    status="active",
    lang=None,
    timezone=None,
    created_at_ms=0,
)


def request(
    path: str = "/dashboard/sign-in",
    *,
    form: Mapping[str, str] | None = None,
    cookies: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
    **params: str,
) -> Request:
    """A GET, or with `form` a POST; `params` are parts of the path."""
    body = urlencode(form or {}).encode()
    given = {
        "host": "msgsvc.test",
        "user-agent": FIREFOX,
        "cookie": "; ".join(f"{name}={value}" for name, value in (cookies or {}).items()),
        "content-length": str(len(body)),
        **(headers or {}),
    }
    scope = {
        "type": "http",
        "method": "GET" if form is None else "POST",
        "scheme": "http",
        "server": ("msgsvc.test", 80),
        "client": ("203.0.113.7", 50000),
        "path": path,
        "query_string": urlencode(query or {}).encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "path_params": params,
        "state": {},
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(scope, receive)


def cookies_of(response: Response) -> dict[str, str]:
    """What the browser keeps of an answer, by name: the value and how it is kept."""
    kept = [value.decode() for name, value in response.raw_headers if name == b"set-cookie"]
    return {one.partition("=")[0]: one.partition("=")[2] for one in kept}


def value_of(response: Response, name: str) -> str:
    """The value of a cookie that an answer sets."""
    return cookies_of(response)[name].partition(";")[0]


def to(response: Response) -> str:
    """Where an answer leads."""
    assert response.status_code == 303
    return response.headers["location"]


def text(response: Response) -> str:
    return bytes(response.body).decode()


def session(account: Account = ANN, session_id: str = "ase_1") -> AccountSession:
    """A browser in which somebody is signed in."""
    return AccountSession(session_id, account, 0, 0, 10**15, "203.0.113.7", FIREFOX)


def page(
    core: MemoryCore,
    role: Role | None = "owner",
    *,
    account: Account = ANN,
    tx: Tx | None = None,
    query: Mapping[str, str] | None = None,
    **typed: str,
) -> PageContext:
    """What the handler of a page of the project gets; `typed` is the form that was sent."""
    return PageContext(
        viewer=account,
        project=None if role is None else Project(PROJECT, "Shop", "active", 0),
        role=role,
        member=None,
        plan=None,
        lang="en",
        languages=("en", "ru"),
        timezone=ZoneInfo("UTC"),
        clock=core.clock,
        _=core.texts.into("en"),
        params={},
        query=query or {},
        form=PostedForm({name: [value] for name, value in typed.items()}),
        root="/dashboard",
        ip="203.0.113.7",
        session_id="ase_1",
        optional_tx=tx,
    )
