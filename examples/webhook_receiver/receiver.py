"""The smallest receiver of msgsvc webhooks: verify, deduplicate, print."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
from collections import deque

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

#: Delivery ids remembered. A real receiver keeps them in its database for two days (the last
#: retry comes after one), written in the same transaction as what the event causes.
REMEMBERED = 10_000


def signature_is_valid(secret: str, header: str, body: bytes) -> bool:
    """Whether `X-Service-Signature` (`t=<unix seconds>,v1=<hex>[,v1=<hex>]`) signs these bytes."""
    parts = [part.strip().partition("=") for part in header.split(",")]
    timestamp = next((value for name, _, value in parts if name == "t"), "")
    signed = timestamp.encode() + b"." + body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()
    # Two v1 while the secret is being rotated: one match is enough.
    given = [value.encode() for name, _, value in parts if name == "v1"]
    return any(hmac.compare_digest(expected, value) for value in given)


def create_app(secret: str) -> Starlette:
    """The receiver as an ASGI application."""
    seen: deque[str] = deque(maxlen=REMEMBERED)

    async def receive(request: Request) -> Response:
        # The raw bytes: parsed and written again, JSON may differ from what was signed.
        body = await request.body()
        if not signature_is_valid(secret, request.headers.get("x-service-signature", ""), body):
            return Response("the signature does not match\n", status_code=400)
        delivery_id = request.headers.get("x-service-delivery-id", "")
        if delivery_id not in seen:
            seen.append(delivery_id)
            event = json.loads(body)
            print(delivery_id, event["event"], event["data"], flush=True)
        # Also for a repeated one, or the service would go on repeating it.
        return Response(status_code=204)

    return Starlette(routes=[Route("/", receive, methods=["POST"])])


def main() -> None:
    """Serve on 127.0.0.1; RECEIVER_SECRET is required, RECEIVER_PORT is 8091 when absent."""
    secret = os.environ.get("RECEIVER_SECRET") or sys.exit("please set RECEIVER_SECRET")
    port = int(os.environ.get("RECEIVER_PORT", "8091"))
    uvicorn.run(create_app(secret), port=port, access_log=False, log_level="warning")


if __name__ == "__main__":
    main()
