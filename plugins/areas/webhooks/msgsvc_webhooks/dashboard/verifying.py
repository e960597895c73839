"""How a receiver checks that a request is the service's: code for its webhook's page."""

from dataclasses import dataclass

_OPENSSL = """\
# body.json is the raw body of a request, TIME and SIGNATURE are t and v1 of its {prefix}-Signature.
EXPECTED=$(printf '%s.' "$TIME" | cat - body.json |
  openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" -r | cut -d ' ' -f 1)
test "$SIGNATURE" = "$EXPECTED" && echo genuine
"""

_PYTHON = """\
import os
from collections.abc import Mapping

from msgsvc_client.webhooks import InvalidWebhook, open_webhook


def receive(headers: Mapping[str, str], body: bytes) -> int:
    \"\"\"The status to answer to a request with this raw body.\"\"\"
    try:
        delivery = open_webhook(headers, body, os.environ["WEBHOOK_SECRET"]{python_prefix})
    except InvalidWebhook:
        return 400
    print(delivery.delivery_id, delivery.event)
    return 204
"""

_TYPESCRIPT = """\
import {{ InvalidWebhookError, openWebhook }} from "@msgsvc/client";

export async function receive(request: Request): Promise<Response> {{
  try {{
    const secret = process.env.WEBHOOK_SECRET ?? "";
    const body = await request.arrayBuffer();
    const delivery = await openWebhook(request.headers, body, secret{typescript_prefix});
    console.log(delivery.deliveryId, delivery.event, delivery.data);
    return new Response(null, {{ status: 204 }});
  }} catch (error) {{
    if (error instanceof InvalidWebhookError) return new Response(null, {{ status: 400 }});
    throw error;
  }}
}}
"""

#: The prefix that the clients expect.
_USUAL = "X-Service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Of a service whose headers begin with `header_prefix`."""

    header_prefix: str

    def snippets(self) -> list[tuple[str, str]]:
        """Pairs of language and code, with the secret in the environment variable `WEBHOOK_SECRET`."""
        prefix = self.header_prefix
        is_usual = prefix == _USUAL
        values = {
            "prefix": prefix,
            "python_prefix": "" if is_usual else f', prefix="{prefix}"',
            "typescript_prefix": "" if is_usual else f', {{ prefix: "{prefix}" }}',
        }
        return [
            (title, code.format(**values))
            for title, code in (
                ("openssl", _OPENSSL),
                ("Python", _PYTHON),
                ("TypeScript", _TYPESCRIPT),
            )
        ]
