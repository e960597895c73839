"""The verifiers in contrib/verify, in their own languages, on the shared vectors."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.vectors.generate import VECTORS

ROOT = Path(__file__).parents[2]
VERIFY = ROOT / "contrib" / "verify"
PACKAGES = {"node": "nodejs", "php": "php-cli", "go": "golang-go"}
LANGUAGES = ("python", *PACKAGES)

#: Where Go keeps what it has compiled from run to run: its standard library takes seconds.
COMPILED = ROOT / "build" / "go"


def run(language: str, vectors: Path) -> subprocess.CompletedProcess[str]:
    """Ends with 0 if the verifier judges every case of `vectors` as it says."""
    program = sys.executable if language == "python" else shutil.which(language)
    if program is None:
        pytest.skip(f"{language} is missing: apt-get install {PACKAGES[language]}")
    arguments = {
        "python": ["-W", "error", "run_vectors.py", str(vectors)],
        "node": ["run_vectors.mjs", str(vectors)],
        "php": ["-d", "error_reporting=-1", "run_vectors.php", str(vectors)],
        "go": ["test", "-count=1", "-v", "./..."],
    }
    return subprocess.run(
        [program, *arguments[language]],
        cwd=VERIFY / language,
        # A module of the standard library alone: Go may look for nothing elsewhere.
        env={**os.environ, "VECTORS": str(vectors), "GOFLAGS": "-mod=mod", "GOPROXY": "off"}
        | {"GOTOOLCHAIN": "local", "GOCACHE": str(COMPILED), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_verifier_judges_every_shared_case_rightly(language: str) -> None:
    vectors = json.loads(VECTORS.read_text("utf-8"))
    count = len(vectors["signature"]) + len(vectors["standard"])

    done = run(language, VECTORS)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} cases" in done.stdout
    assert "warning" not in (done.stdout + done.stderr).lower()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", ["signature", "standard"])
def test_runner_tells_of_a_case_that_is_judged_wrongly(
    language: str, kind: str, tmp_path: Path
) -> None:
    vectors = json.loads(VECTORS.read_text("utf-8"))
    vectors[kind][3]["valid"] = not vectors[kind][3]["valid"]
    turned = tmp_path / "turned.json"
    turned.write_text(json.dumps(vectors), encoding="utf-8")

    done = run(language, turned)

    assert done.returncode == 1
    assert vectors[kind][3]["about"] in done.stdout


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_verifier_has_its_instructions(language: str) -> None:
    text = (VERIFY / language / "README.md").read_text("utf-8")

    assert "X-Service-Delivery-Id".lower() in text.lower()
    assert "run_vectors" in text or "go test" in text
    assert f"({language}/README.md)" in (VERIFY / "README.md").read_text("utf-8")
