"""HTTP/1.1 client for calls to servers that others run: platforms, receivers of webhooks, hosts of files."""

from msgsvc_core.http_client.client import HttpClient, StreamedResponse
from msgsvc_core.http_client.connecting import Connector, Proxy
from msgsvc_core.http_client.connection import Limits
from msgsvc_core.http_client.errors import (
    CallError,
    CallTimeout,
    ConnectionLost,
    InvalidResponse,
    NameNotResolved,
    NoConnectionInTime,
    NotConnected,
)
from msgsvc_core.http_client.failures import CallFailure, explain_call
from msgsvc_core.http_client.messages import Headers, Response
from msgsvc_core.http_client.upload import FileUpload, Upload

__all__ = [
    "CallError",
    "CallFailure",
    "CallTimeout",
    "ConnectionLost",
    "Connector",
    "FileUpload",
    "Headers",
    "HttpClient",
    "InvalidResponse",
    "Limits",
    "NameNotResolved",
    "NoConnectionInTime",
    "NotConnected",
    "Proxy",
    "Response",
    "StreamedResponse",
    "Upload",
    "explain_call",
]
