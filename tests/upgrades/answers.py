"""What a service answers to every GET: asked of a release when it is recorded, and of today's code.

As a script, run by the interpreter of a release:

    python answers.py CONFIGURATION MOMENT_MS KEY ASKED ANSWERS

`ASKED` is a file with a JSON list of paths with their query strings; `ANSWERS` gets what was answered.
"""

import asyncio
import base64
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2

from msgsvc_core.config.settings import load_settings
from msgsvc_core.service import Service
from msgsvc_devkit.clock import FakeClock

#: Pages and documents that belong to no area of the API's description.
BESIDE = (
    "/healthz",
    "/login/{slug}",
    "/f/{form_id}?lang=ru",
    "/oidc/{project_id}/.well-known/openid-configuration",
    "/oidc/{project_id}/jwks",
    "/sandbox/api/people",
    "/sandbox/api/bots",
)


def paths_of(document: Mapping[str, Any], ids: Mapping[str, Sequence[str]]) -> list[str]:
    """Every GET of an OpenAPI document, for every id; lists whole, and by pages of one."""
    found = []
    for path, operations in document["paths"].items():
        operation = operations.get("get")
        if operation is None:
            continue
        # What several operations have is a reference to a component of its name.
        names = {
            each.get("name") or each["$ref"].rpartition("/")[2]
            for each in operation.get("parameters", [])
        }
        for concrete in _filled(path, ids):
            pages = ("?limit=100", "?limit=1") if "limit" in names else ("",)
            found += [concrete + page for page in pages]
    for path in BESIDE:
        found += _filled(path, ids)
    return found


def _filled(path: str, ids: Mapping[str, Sequence[str]]) -> list[str]:
    before, brace, rest = path.partition("{")
    if not brace:
        return [path]
    name, _, after = rest.partition("}")
    assert ids.get(name), f"nothing was noted for {name} of {path}"
    return [each for value in ids[name] for each in _filled(f"{before}{value}{after}", ids)]


async def ask(service: Service, key: str, asked: Sequence[str]) -> dict[str, Any]:
    """By path: status, type and body; of a list by pages also the second page, by its cursor."""
    answers = {}
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=service.app),
        base_url=service.settings.base_url,
        headers={"Authorization": f"Bearer {key}"},
    ) as client:
        for path in asked:
            answers[path] = answer = await _answer(client, path)
            cursor = answer["body"].get("next_cursor") if path.endswith("?limit=1") else None
            if cursor and (following := f"{path}&cursor={cursor}") not in asked:
                answers[following] = await _answer(client, following)
    return answers


async def _answer(client: httpx2.AsyncClient, path: str) -> dict[str, Any]:
    answer = await client.get(path)
    kind = answer.headers.get("Content-Type", "").partition(";")[0]
    body: Any
    if kind.endswith("json"):
        body = answer.json()
    elif kind.startswith("text/html"):
        # What a page says is not promised, but that there is one.
        body = {}
    else:
        body = {"base64": base64.b64encode(answer.content).decode()}
    return {"status": answer.status_code, "type": kind, "body": body}


async def _all(config: Path, moment: datetime, key: str, asked: Sequence[str]) -> dict[str, Any]:
    settings = load_settings(config, env={}, quarantine=True)
    async with Service(settings, clock=FakeClock(moment)) as service:
        return await ask(service, key, asked)


def main(config: str, moment_ms: str, key: str, asked: str, answers: str) -> None:
    moment = datetime.fromtimestamp(int(moment_ms) / 1000, UTC)
    paths = json.loads(Path(asked).read_text("utf-8"))
    found = asyncio.run(_all(Path(config), moment, key, paths))
    Path(answers).write_text(json.dumps(found, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
