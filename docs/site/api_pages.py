"""Pages of the API, from contrib/openapi.json: one for each area, one for the events, and an index."""

from collections.abc import Iterator, Mapping
from typing import Any

from contrib.clients.codegen.samples import Samples
from docs.site.pages import Page
from msgsvc_core.api.markdown import ApiPages

#: Areas whose tag in the document is an abbreviation, or does not say what people look for.
_TITLES = {
    "auth": "Sign-in",
    "drips": "Drip campaigns",
    "members": "Team members",
    "oidc": "OpenID Connect",
    "otp": "One-time codes",
    "scheduling": "Scheduled messages",
}

_MORE = {
    "index": "The OpenAPI document is [openapi.json](../contrib/openapi.json); a running service serves its"
    " own at `/openapi.json`, and this reference at `/docs`.\n\n",
    "webhook-events": "[Receive webhooks](../guides/receive-webhooks.md) shows how to verify"
    " the signature.\n\n",
}


def api_pages(document: Mapping[str, Any]) -> Iterator[Page]:
    """`document` is what an OpenAPI document holds, as `json` reads it."""
    samples = Samples(document)
    pages = ApiPages(
        document,
        lambda method, path, operation: [
            (f"{each.language} tab={each.title}", each.code)
            for each in samples.of(method, path, operation)
        ],
        errors_page="../reference/errors.md",
        titles=_TITLES,
        more=_MORE,
    )
    for page in pages:
        yield Page(f"api/{page.name}.md", page.text, page.title)
