"""The least that Starlette can do: write a body's JSON back, or answer a GET with a little JSON.

Run as a script it serves on a free port of 127.0.0.1, and prints the address.
"""

import socket

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def echo(request: Request) -> JSONResponse:
    return JSONResponse(await request.json(), status_code=202)


async def status(_request: Request) -> JSONResponse:
    return JSONResponse(
        {"session_id": "ses_0000000000000000000000", "status": "pending", "expires_in": 600}
    )


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"echo listens on http://127.0.0.1:{listener.getsockname()[1]}, bare", flush=True)  # noqa: T201 - its starter reads it
    routes = [Route("/v1/send", echo, methods=["POST"]), Route("/status", status)]
    config = uvicorn.Config(
        Starlette(routes=routes),
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
