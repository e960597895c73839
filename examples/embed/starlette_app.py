"""A shop made with Starlette that has msgsvc inside: mounted under /msgsvc, and called in process."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from msgsvc_core.config.settings import Settings, load_settings
from msgsvc_core.events import Event
from msgsvc_core.kernel.errors import SubscriberNotFound
from msgsvc_core.service import Service

PORT = 8080


def build(settings: Settings, extra_plugins: Iterable[tuple[str, Any]] = ()) -> Starlette:
    """The shop, with a service of its own. Nothing is shared with another that is built."""
    service = Service(settings, extra_plugins=extra_plugins)

    @service.on("subscription.created")
    async def greet(event: Event) -> None:
        # Called after the commit, in this process.
        await service.messages.send(
            event.project_id,
            subscriber_id=event.data["subscriber_id"],
            text=f"Welcome, {event.data['first_name']}! We write here when an order leaves.",
        )

    async def ship(request: Request) -> JSONResponse:
        order, customer = request.path_params["order"], request.path_params["customer"]
        try:
            message = await service.messages.send(
                request.app.state.project_id,
                external_id=customer,
                text=f"Your order {order} is on its way.",
            )
        except SubscriberNotFound:
            return JSONResponse({"shipped": order, "told": None})
        return JSONResponse({"shipped": order, "told": message.message_id})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # Starlette runs no lifespan of mounted applications, so the shop starts the service.
        async with service:
            projects = await service.projects.list()
            project = projects[0] if projects else await service.projects.create("Shop")
            app.state.project_id = project.project_id
            yield

    app = Starlette(
        routes=[
            Route("/orders/{order}/ship/{customer}", ship, methods=["POST"]),
            Mount("/msgsvc", app=service.app),
        ],
        lifespan=lifespan,
    )
    app.state.service = service
    return app


def main() -> None:
    """Serve the shop; MSGSVC_SECRET_KEYS is required. Other MSGSVC_* variables count too, but for what is
    said here, which wins."""
    settings = load_settings(
        # What the service is reached under, its path in the shop included: links are made of it.
        base_url=f"http://127.0.0.1:{PORT}/msgsvc",
        database_url="sqlite:///shop.db",
        plugins=("sandbox",),
    )
    uvicorn.run(build(settings), port=PORT)


if __name__ == "__main__":
    main()
