"""The receiver, started as its reader starts it."""

from __future__ import annotations

import hashlib
import hmac
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

from tests.ports import free_ports

RECEIVER = Path(__file__).parents[1] / "receiver.py"
SECRET = "whsec_dGVzdA=="
BODY = b'{ "event": "event.tracked", "data": {"name": "visit"} }'


@pytest.fixture
def receiver() -> Iterator[tuple[subprocess.Popen[str], str]]:
    port = str(free_ports())
    env = {**os.environ, "RECEIVER_SECRET": SECRET, "RECEIVER_PORT": port}
    with subprocess.Popen(
        [sys.executable, str(RECEIVER)], env=env, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_for(url := f"http://127.0.0.1:{port}/", process)
            yield process, url
        finally:
            process.terminate()


def wait_for(url: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urlopen(url).close()
        except HTTPError as error:
            # GET is not allowed, but it was answered.
            error.close()
            return
        except URLError:
            time.sleep(0.05)
    raise AssertionError("the receiver did not start; its output is above")


def post(url: str, delivery_id: str, secret: str) -> int:
    now = str(int(time.time()))
    digest = hmac.new(secret.encode(), now.encode() + b"." + BODY, hashlib.sha256).hexdigest()
    headers = {
        "X-Service-Signature": f"t={now},v1={digest}",
        "X-Service-Delivery-Id": delivery_id,
    }
    try:
        with urlopen(Request(url, BODY, headers)) as response:
            return int(response.status)
    except HTTPError as error:
        error.close()
        return error.code


def test_only_new_and_signed_deliveries_are_printed(
    receiver: tuple[subprocess.Popen[str], str],
) -> None:
    process, url = receiver

    statuses = [
        post(url, "whd_1", "whsec_wrong"),
        post(url, "whd_1", SECRET),
        post(url, "whd_1", SECRET),
        post(url, "whd_2", SECRET),
    ]
    process.terminate()
    printed = process.stdout.read().splitlines() if process.stdout else []

    assert statuses == [400, 204, 204, 204]
    assert printed == [
        "whd_1 event.tracked {'name': 'visit'}",
        "whd_2 event.tracked {'name': 'visit'}",
    ]
