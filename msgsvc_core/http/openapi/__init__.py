"""The API as OpenAPI 3.1, generated from the types that validate."""

from msgsvc_core.http.openapi.document import openapi
from msgsvc_core.http.openapi.errors import EVERYWHERE, ErrorEnvelope, errors_of
from msgsvc_core.http.openapi.sharing import shared

__all__ = ["EVERYWHERE", "ErrorEnvelope", "errors_of", "openapi", "shared"]
