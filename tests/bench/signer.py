"""The least that a token endpoint must do: answer a POST with one RS256 token.

Run as a script it serves on a free port of 127.0.0.1, and prints the address. Its argument is the claims of
the token as JSON.
"""

import json
import socket
import sys

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

HEADER = {"alg": "RS256", "kid": "key_0000000000000000000000", "typ": "JWT"}


def main() -> None:
    """Serves until it is killed."""
    claims, key = json.loads(sys.argv[1]), RSAKey.generate_key(2048)

    async def token(request: Request) -> JSONResponse:
        await request.body()
        return JSONResponse({"id_token": jwt.encode(HEADER, claims, key), "token_type": "Bearer"})

    listener = socket.create_server(("127.0.0.1", 0))
    print(f"signer listens on http://127.0.0.1:{listener.getsockname()[1]}, bare", flush=True)  # noqa: T201 - its starter reads it
    config = uvicorn.Config(
        Starlette(routes=[Route("/token", token, methods=["POST"])]),
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
