"""Calls of each operation in curl, Python and TypeScript, as the page of the API shows them.

`make docs` writes them from the OpenAPI document; what plugins of others add has none.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

#: The service of the written samples.
_WRITTEN_FOR = "https://msgsvc.example"


@cache
def read_samples() -> Mapping[str, Mapping[str, str]]:
    """Code by operation id and language, e.g. `read_samples()["send"]["Python"]`."""
    path = Path(__file__).with_name("samples.json")
    found: dict[str, dict[str, str]] = json.loads(path.read_text("utf-8"))
    return found


def samples_of(operation_id: str, base_url: str) -> list[tuple[str, str]]:
    """Pairs of language and code that calls the operation of the service at `base_url`, with the key in the
    environment variable `KEY`; empty if there are none."""
    found = read_samples().get(operation_id, {})
    return [(title, code.replace(_WRITTEN_FOR, base_url)) for title, code in found.items()]
