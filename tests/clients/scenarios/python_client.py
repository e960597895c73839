"""Plays calls with the Python client, async or sync."""

import asyncio
from collections.abc import Mapping
from functools import reduce
from typing import Any

from msgsvc_client import AsyncClient, Client, RetryPolicy, open_webhook
from msgsvc_client.errors import (
    ApiError,
    ConnectFailed,
    ConnectionBroken,
    InvalidResponse,
    RequestTimeout,
)
from msgsvc_client.webhooks import InvalidWebhook

#: A short base, as tests wait for each retry.
_RETRIES = RetryPolicy(max_attempts=3, base_s=0.05)
_ONCE = RetryPolicy(max_attempts=1)

Call = Mapping[str, Any]
Outcome = dict[str, Any]


def _arguments(call: Call) -> tuple[list[str], dict[str, Any]]:
    named = {**call.get("body", {}), **call.get("query", {}), **call.get("options", {})}
    return list(call.get("path", ())), named


def _method(client: Any, dotted: str) -> Any:
    return reduce(getattr, dotted.split("."), client)


def _plain(answer: Any) -> Any:
    """An answer as JSON has it."""
    return None if answer is None else answer.raw


#: How each failure without an error code is called, whatever its class is in a language.
_FAILURES = {
    ConnectFailed: "the connection broke",
    ConnectionBroken: "the connection broke",
    RequestTimeout: "no answer in time",
    InvalidResponse: "not the service's answer",
    InvalidWebhook: "the webhook is not the service's",
}


def _failure(error: Exception) -> Outcome:
    if not isinstance(error, ApiError):
        return {"failed": _FAILURES.get(type(error), f"unexpectedly: {error!r}")}
    if error.code.startswith("http_"):
        return {"failed": f"not the service's answer: {error.status}"}
    kind = type(error).__name__.removesuffix("Error")
    told = {"code": error.code, "status": error.status, "retryable": error.retryable}
    return {"error": {"class": kind, **told}}


def _opened(webhook: Mapping[str, Any]) -> Outcome:
    delivery = open_webhook(webhook["headers"], webhook["body"].encode(), webhook["secrets"])
    event = delivery.event.raw
    return {"answer": {"event": event["event"], "data": event["data"]}}


class AsyncPerformer:
    """Performs calls with `AsyncClient`."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._clients: dict[tuple[str, bool], AsyncClient] = {}

    def _client(self, call: Call) -> AsyncClient:
        key, once = call["api_key"], call.get("once", False)
        retries = _ONCE if once else _RETRIES
        made = self._clients.get((key, once))
        if made is None:
            made = AsyncClient(key, self._base_url, retries=retries)
            self._clients[key, once] = made
        return made

    async def __call__(self, call: Call) -> Outcome:
        try:
            if "webhook" in call:
                return _opened(call["webhook"])
            path, named = _arguments(call)
            found = _method(self._client(call), call["call"])(*path, **named)
            if call.get("all"):
                return {"items": [_plain(each) async for each in found]}
            return {"answer": _plain(await found)}
        except Exception as error:  # noqa: BLE001 # each is an outcome
            return _failure(error)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()


class SyncPerformer:
    """Performs calls with `Client`, each in a thread."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._clients: dict[tuple[str, bool], Client] = {}

    def _client(self, call: Call) -> Client:
        key, once = call["api_key"], call.get("once", False)
        retries = _ONCE if once else _RETRIES
        made = self._clients.get((key, once))
        if made is None:
            made = self._clients[key, once] = Client(key, self._base_url, retries=retries)
        return made

    async def __call__(self, call: Call) -> Outcome:
        return await asyncio.to_thread(self._perform, call)

    def _perform(self, call: Call) -> Outcome:
        try:
            if "webhook" in call:
                return _opened(call["webhook"])
            path, named = _arguments(call)
            found = _method(self._client(call), call["call"])(*path, **named)
            if call.get("all"):
                return {"items": [_plain(each) for each in found]}
            return {"answer": _plain(found)}
        except Exception as error:  # noqa: BLE001 # each is an outcome
            return _failure(error)

    async def close(self) -> None:
        for client in self._clients.values():
            client.close()
