"""Client for msgsvc: async and sync, typed.

`AsyncClient` and `Client` have the resources of the API. Answers are in `models`, objects within requests
in `bodies`, exceptions in `errors`, events in `events`, and webhooks are verified by `webhooks`.
"""

from msgsvc_client._async.client import AsyncClient
from msgsvc_client._async.downloads import AsyncCsvExport, AsyncDownload
from msgsvc_client._async.feed import AsyncCursorStore, AsyncFileCursorStore
from msgsvc_client._async.pages import AsyncPaginator
from msgsvc_client._async.transport import (
    AsyncClock,
    AsyncHttpxTransport,
    AsyncResponse,
    AsyncTransport,
)
from msgsvc_client._sync.client import Client
from msgsvc_client._sync.downloads import CsvExport, Download
from msgsvc_client._sync.feed import CursorStore, FileCursorStore
from msgsvc_client._sync.pages import Paginator
from msgsvc_client._sync.transport import Clock, HttpxTransport, Response, Transport
from msgsvc_client._wire import NOT_GIVEN, NotGiven, Request
from msgsvc_client.errors import (
    ApiError,
    ConnectFailed,
    ConnectionBroken,
    InvalidResponse,
    MsgsvcError,
    RequestTimeout,
    TransportError,
)
from msgsvc_client.pages import Page
from msgsvc_client.retries import NO_RETRIES, RetryPolicy
from msgsvc_client.version import __version__
from msgsvc_client.webhooks import Delivery, InvalidWebhook, open_webhook

__all__ = [
    "NOT_GIVEN",
    "NO_RETRIES",
    "ApiError",
    "AsyncClient",
    "AsyncClock",
    "AsyncCsvExport",
    "AsyncCursorStore",
    "AsyncDownload",
    "AsyncFileCursorStore",
    "AsyncHttpxTransport",
    "AsyncPaginator",
    "AsyncResponse",
    "AsyncTransport",
    "Client",
    "Clock",
    "ConnectFailed",
    "ConnectionBroken",
    "CsvExport",
    "CursorStore",
    "Delivery",
    "Download",
    "FileCursorStore",
    "HttpxTransport",
    "InvalidResponse",
    "InvalidWebhook",
    "MsgsvcError",
    "NotGiven",
    "Page",
    "Paginator",
    "Request",
    "RequestTimeout",
    "Response",
    "RetryPolicy",
    "Transport",
    "TransportError",
    "__version__",
    "open_webhook",
]
