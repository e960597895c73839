"""A site that signs people in by msgsvc inside it: no API key, and no HTTP between the two."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from msgsvc_auth.clients import Client
from msgsvc_auth.models import CreateSessionBody
from msgsvc_auth.service import SignIn
from msgsvc_core.config.settings import Settings, load_settings
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.service import Service
from msgsvc_core.subscribers.models import Subscriber

PORT = 8080

#: Seconds for which one request waits for the person's answer; the page asks again after it.
WAIT_S = 25


async def begin(service: Service, project_id: str, client: Client) -> tuple[str, dict[str, str]]:
    """A session's id, to be kept on the server or in a cookie that no script reads, and the link to show
    for each messenger."""
    sign_in = service.get(SignIn)
    async with service.db.transaction() as tx:
        new = await sign_in.open(tx, project_id, CreateSessionBody(client=client))
    return new.session.session_id, sign_in.links(new)


async def finish(
    service: Service, project_id: str, session_id: str
) -> tuple[str, Subscriber | None]:
    """The session's status and, once the person has said Yes, who it is."""
    sign_in = service.get(SignIn)
    session = await sign_in.wait(project_id, session_id, WAIT_S)
    now_ms = service.clock.now_ms()
    code = sign_in.code_of(session, now_ms)
    if code is None:
        return session.status(now_ms), None
    # Works once: of two requests that come at the same time, one gets `AuthCodeUsed`.
    _, subscriber = await sign_in.verify(project_id, code)
    return "signed in", subscriber


def build(settings: Settings, extra_plugins: Iterable[tuple[str, Any]] = ()) -> Starlette:
    """The site, with a service of its own."""
    service = Service(settings, extra_plugins=extra_plugins)

    async def start(request: Request) -> JSONResponse:
        ip, agent = request.client.host if request.client else "", request.headers["user-agent"]
        client = Client.from_request(ip, agent)
        session_id, links = await begin(service, request.app.state.project_id, client)
        answer = JSONResponse({"links": links})
        answer.set_cookie("sign_in", session_id, max_age=600, httponly=True, samesite="lax")
        return answer

    async def wait(request: Request) -> JSONResponse:
        session_id = request.cookies.get("sign_in", "")
        try:
            status, who = await finish(service, request.app.state.project_id, session_id)
        except ApiError as error:
            return JSONResponse({"error": error.code}, status_code=error.status)
        if who is None:
            return JSONResponse({"status": status})
        # Here your site begins its own session, for the account that it keeps under `subscriber_id`.
        return JSONResponse({"status": status, "id": who.subscriber_id, "name": who.first_name})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with service:
            projects = await service.projects.list()
            project = projects[0] if projects else await service.projects.create("Shop")
            app.state.project_id = project.project_id
            yield

    app = Starlette(
        routes=[
            Route("/sign-in", start, methods=["POST"]),
            Route("/sign-in/wait", wait),
            # For bots' webhooks and QR codes; the site itself calls nothing there.
            Mount("/msgsvc", app=service.app),
        ],
        lifespan=lifespan,
    )
    app.state.service = service
    return app


def main() -> None:
    """Serve the site; MSGSVC_SECRET_KEYS is required."""
    settings = load_settings(
        base_url=f"http://127.0.0.1:{PORT}/msgsvc",
        database_url="sqlite:///shop.db",
        plugins=("sandbox", "auth"),
    )
    uvicorn.run(build(settings), port=PORT)


if __name__ == "__main__":
    main()
