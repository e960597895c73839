"""The vectors that verifiers in other languages share: ours is held to them too."""

import base64
import json
from typing import Any

import pytest

from msgsvc_core.security.signing import InvalidWebhook, open_webhook, verify_standard
from tests.vectors.generate import VECTORS, render

CASES: dict[str, Any] = json.loads(VECTORS.read_text("utf-8"))


def about(case: Any) -> str:
    return str(case["about"])


def test_the_file_is_what_its_script_writes() -> None:
    assert VECTORS.read_text("utf-8") == render()


@pytest.mark.parametrize("name", ["signature", "standard"])
def test_no_two_cases_tell_the_same(name: str) -> None:
    told = [about(case) for case in CASES[name]]

    assert len(told) == len(set(told))


@pytest.mark.parametrize("case", CASES["signature"], ids=about)
def test_our_signature(case: Any) -> None:
    body = base64.b64decode(case["body"])
    problem = ""

    try:
        open_webhook(case["headers"], body, case["secrets"])
    except InvalidWebhook as error:
        problem = str(error)
    except ValueError as error:
        # Of a secret that can't be one; a request that is wrong is told by the answer.
        problem = str(error)
        assert "secret" in case["about"]

    # Some signed bodies are no events, so as to show that the raw bytes are what counts.
    assert (problem in {"", "the body is not {event, data}"}) == case["valid"]


@pytest.mark.parametrize("case", CASES["standard"], ids=about)
def test_signature_of_standard_webhooks(case: Any) -> None:
    body = base64.b64decode(case["body"])

    try:
        accepted = verify_standard(case["headers"], body, case["secrets"])
    except ValueError:
        # Of a secret that can't be one; a request that is wrong is told by the answer.
        assert "secret" in case["about"]
        accepted = False

    assert accepted == case["valid"]
