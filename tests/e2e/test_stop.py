"""A server that is told to stop while somebody waits for a sign-in."""

import threading
import time
from pathlib import Path

import httpx2

from tests.process import Deployment, until

#: Seconds that a stop may take on a busy machine; with the wait it would be 25. Who is cut off before that,
#: after 5, is answered with an error.
SOON_S = 20.0


def test_a_waiting_poll_is_answered_with_the_present_state_at_once(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path, forks=False)
    deployment.configure('plugins = ["sandbox", "auth"]')
    answers: list[httpx2.Response] = []
    key = deployment.create_key()
    server = deployment.start()
    try:
        headers = {"Authorization": f"Bearer {key}"}
        with httpx2.Client(base_url=server.url, headers=headers, timeout=40) as client:
            made = client.post("/v1/auth/session", json={"state": "s"}).json()
            path = f"/v1/auth/session/{made['session_id']}/status?wait=25"
            waiting = threading.Thread(target=lambda: answers.append(client.get(path)))
            before = _in_flight(server.url)
            waiting.start()
            until(lambda: _in_flight(server.url) == before + 1)
            began_s = time.monotonic()
            code = server.end()
            took_s = time.monotonic() - began_s
            waiting.join(40)
    finally:
        server.process.kill()
    log = (tmp_path / "serve.log").read_text()

    assert code == 0
    assert took_s < SOON_S
    assert [answer.status_code for answer in answers] == [200]
    assert answers[0].json()["status"] == "pending"
    assert "Traceback" not in log


def _in_flight(url: str) -> float:
    """How many requests are being answered, this one among them."""
    name = "msgsvc_http_requests_in_flight "
    lines = httpx2.get(f"{url}/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name))
