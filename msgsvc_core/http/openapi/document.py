"""Puts the document together."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from msgsvc_core.api.conventions import description
from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.http.openapi.errors import ErrorEnvelope, error_examples, errors_of
from msgsvc_core.http.openapi.operations import Operations
from msgsvc_core.http.openapi.schemas import schemas_of
from msgsvc_core.kernel.i18n import LANGUAGES


def openapi(
    endpoints: Sequence[Endpoint],
    base_url: str,
    languages: Sequence[str] = LANGUAGES,
    errors_url: str | None = None,
) -> dict[str, Any]:
    """The document at `/openapi.json`; `languages` are those of the setting, `errors_url` is the page of
    error codes."""
    references, schemas = schemas_of(endpoints, [ErrorEnvelope], languages)
    operations = Operations(references, schemas)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operations.of(endpoint)
    errors = {error.code: error for endpoint in endpoints for error in errors_of(endpoint)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "msgsvc",
            "version": version("msgsvc-core"),
            "description": description(),
        },
        "servers": [{"url": base_url}],
        "security": [{"bearer": []}, {"header": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "examples": error_examples(
                (errors[code] for code in sorted(errors)), errors_url or f"{base_url}/docs/errors"
            ),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }
