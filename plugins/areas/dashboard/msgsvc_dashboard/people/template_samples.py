"""Code that sends a template, as the API's own samples are written (`msgsvc_core.api.samples`)."""

import json
from collections.abc import Sequence
from typing import Any

#: The recipient of the samples.
SUBSCRIBER_ID = "sub_032aJamqrBeOkgXDU14hTS"

#: What stands for the value of each variable.
VALUE = "…"

CURL = """\
curl {base_url}/v1/send \\
  -H "Authorization: Bearer $KEY" \\
  -H "Content-Type: application/json" \\
  -d '{body}'
"""

PYTHON = """\
import os

from msgsvc_client import Client

client = Client(os.environ["KEY"], "{base_url}")
answer = client.messages.send(
{fields})
"""

TYPESCRIPT = """\
import {{ Client }} from "@msgsvc/client";

const client = new Client({{
  baseUrl: "{base_url}",
  apiKey: process.env.KEY ?? "",
}});
const answer = await client.messages.send({{
{fields}}});
"""


def samples_of(base_url: str, key: str, variables: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of language and code that sends the template, with the key in the environment variable `KEY`."""
    body: dict[str, Any] = {"subscriber_id": SUBSCRIBER_ID, "template": key}
    if variables:
        body["variables"] = dict.fromkeys(variables, VALUE)
    fields = [(name, json.dumps(value, ensure_ascii=False)) for name, value in body.items()]
    python = "".join(f"    {name}={value},\n" for name, value in fields)
    typescript = "".join(f"  {name}: {value},\n" for name, value in fields)
    data = json.dumps(body, ensure_ascii=False, indent=2)
    return [
        ("curl", CURL.format(base_url=base_url, body=data)),
        ("Python", PYTHON.format(base_url=base_url, fields=python)),
        ("TypeScript", TYPESCRIPT.format(base_url=base_url, fields=typescript)),
    ]
