"""The code that a webhook's page shows tells genuine requests from others."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.security.signing import new_secret, sign, standard_headers
from msgsvc_webhooks.dashboard.verifying import Verification

ROOT = Path(__file__).parents[5]
SECRET, TIME = new_secret(), 1772357400
BODY = '{"event":"event.tracked","data":{"event_id":"evt_1","name":"Привет"}}'.encode()
SIGNATURE = sign(BODY, [SECRET], TIME).rpartition("=")[2]


def snippets(prefix: str = "X-Service") -> dict[str, str]:
    return dict(Verification(header_prefix=prefix).snippets())


@pytest.mark.parametrize(
    ("body", "signature", "said"),
    [
        (BODY, SIGNATURE, "genuine\n"),
        (BODY + b" ", SIGNATURE, ""),
        (BODY, "", ""),
        (BODY, ".*", ""),
        (BODY, SIGNATURE[:8], ""),
    ],
    ids=["genuine", "another body", "no signature", "a pattern", "its beginning"],
)
def test_a_shell_verifies_a_body(tmp_path: Path, body: bytes, signature: str, said: str) -> None:
    (tmp_path / "body.json").write_bytes(body)
    environment = {"WEBHOOK_SECRET": SECRET, "TIME": str(TIME), "SIGNATURE": signature}
    done = subprocess.run(
        ["bash", "-c", snippets()["openssl"]],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stderr == ""
    assert done.stdout == said


@pytest.mark.parametrize("prefix", ["X-Service", "X-Shop"])
def test_a_program_in_python_verifies_requests(
    prefix: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    monkeypatch.syspath_prepend(ROOT / "contrib/clients/python")
    names: dict[str, Any] = {}
    exec(compile(snippets(prefix)["Python"], "snippet", "exec"), names)  # noqa: S102 - our own, as a reader runs it
    own = {
        f"{prefix}-Signature": sign(BODY, [SECRET], TIME),
        f"{prefix}-Delivery-Id": "whd_1",
    }
    standard = standard_headers("whd_1", BODY, [SECRET], TIME)

    assert [names["receive"](headers, BODY) for headers in (own, standard)] == [204, 204]
    assert capsys.readouterr().out.count("whd_1") == 2
    assert names["receive"](own, BODY + b" ") == 400


def test_typescript_uses_what_the_client_exports() -> None:
    code = snippets("X-Shop")["TypeScript"]
    imported = re.search(r"import \{ ([\w, ]+) \} from \"@msgsvc/client\"", code)
    assert imported is not None
    sources = ROOT / "contrib/clients/typescript/src"
    exported = (sources / "index.ts").read_text("utf-8")
    # Of which the index exports all.
    errors = (sources / "errors.ts").read_text("utf-8")

    assert 'export * from "./errors.js";' in exported
    for name in imported[1].split(", "):
        assert re.search(rf"^  {name},$", exported, re.MULTILINE) or f"class {name} " in errors, (
            name
        )
    assert '{ prefix: "X-Shop" }' in code
