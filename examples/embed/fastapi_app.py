"""A shop made with FastAPI that has msgsvc inside: mounted under /msgsvc, and called in process."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, Request
from pydantic import BaseModel

from msgsvc_core.config.settings import Settings, load_settings
from msgsvc_core.events import Event
from msgsvc_core.kernel.errors import SubscriberNotFound
from msgsvc_core.service import Service

PORT = 8080


class Shipped(BaseModel):
    """`told` is the message to the customer; null if they have not subscribed."""

    shipped: str
    told: str | None


def the_service(request: Request) -> Service:
    """The service of the application that got the request."""
    service: Service = request.app.state.service
    return service


def build(settings: Settings, extra_plugins: Iterable[tuple[str, Any]] = ()) -> FastAPI:
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

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # FastAPI runs no lifespan of mounted applications, so the shop starts the service.
        async with service:
            projects = await service.projects.list()
            project = projects[0] if projects else await service.projects.create("Shop")
            app.state.project_id = project.project_id
            yield

    app = FastAPI(title="Shop", lifespan=lifespan)
    app.state.service = service
    app.post("/orders/{order}/ship/{customer}")(ship)
    app.mount("/msgsvc", service.app)
    return app


async def ship(
    request: Request, service: Annotated[Service, Depends(the_service)], order: str, customer: str
) -> Shipped:
    """Ships an order, and tells the customer."""
    try:
        message = await service.messages.send(
            request.app.state.project_id,
            external_id=customer,
            text=f"Your order {order} is on its way.",
        )
    except SubscriberNotFound:
        return Shipped(shipped=order, told=None)
    return Shipped(shipped=order, told=message.message_id)


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
