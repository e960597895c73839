"""A server that is told to stop while others use it."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from msgsvc_devkit.deadlines import patient
from tests.process import Deployment, Server, until

pytestmark = pytest.mark.slow

#: Seconds that a stop may take on a busy machine; with the wait it would be 25. Who is cut off before that,
#: after 5, is answered with an error.
SOON_S = patient(20.0)

#: Seconds of a drain, and between two checks of `/readyz`; a busy machine takes a second for each check.
DRAIN_S, LOOK_S = patient(8.0), 0.1

#: Clients of a balancer, who call one after the other without a pause.
CLIENTS = 3


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


def test_no_request_fails_while_a_balancer_moves_clients_to_another_process(tmp_path: Path) -> None:
    with _draining(tmp_path / "first") as first, _draining(tmp_path / "second") as second:
        balancer = _Balancer([first.url, second.url])
        clients = [threading.Thread(target=balancer.call) for _ in range(CLIENTS)]
        looks = threading.Thread(target=balancer.look)
        for thread in (looks, *clients):
            thread.start()
        try:
            until(lambda: len(balancer.calls) > 100)
            told_s = time.monotonic()
            code = first.end()
            took_s = time.monotonic() - told_s
            after = len(balancer.calls)
            until(lambda: len(balancer.calls) > after + 100)
        finally:
            balancer.is_ending = True
            for thread in (looks, *clients):
                thread.join(40)
    served = [url for at_s, url, _ in balancer.calls if at_s > told_s]

    assert balancer.failed == []
    assert balancer.away == {first.url: "draining"}
    assert {first.url, second.url} == set(served)
    assert code == 0
    assert DRAIN_S <= took_s < DRAIN_S + SOON_S


def test_each_response_of_a_drain_ends_its_connection(tmp_path: Path) -> None:
    with _draining(tmp_path) as server, httpx2.Client(base_url=server.url) as client:
        before = client.get("/healthz").headers.get("connection")
        server.process.terminate()
        until(lambda: client.get("/readyz").status_code == 503)
        drained = client.get("/healthz")

    assert before is None
    assert drained.status_code == 200
    assert drained.headers["connection"] == "close"


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_a_drain(tmp_path: Path, second: signal.Signals) -> None:
    with _draining(tmp_path, drain_s=300) as server:
        server.process.terminate()
        until(lambda: httpx2.get(f"{server.url}/readyz").status_code == 503)
        server.process.send_signal(second)
        code = server.process.wait(SOON_S)

    assert code == 0


def test_ctrl_c_does_not_wait_for_a_balancer(tmp_path: Path) -> None:
    with _draining(tmp_path, drain_s=300) as server:
        server.process.send_signal(signal.SIGINT)
        code = server.process.wait(SOON_S)

    assert code == 0


class _Balancer:
    """Sends its clients' requests to the first process that is ready, over connections that it keeps."""

    def __init__(self, urls: list[str]) -> None:
        self._urls = urls
        self.is_ending = False
        #: What each process that is not ready says of itself.
        self.away: dict[str, str] = {}
        #: When each answer came, in seconds, from where, and its status.
        self.calls: list[tuple[float, str, int]] = []
        self.failed: list[str] = []

    def look(self) -> None:
        while not self.is_ending:
            for url in self._urls:
                if url not in self.away:
                    try:
                        answer = httpx2.get(f"{url}/readyz", timeout=SOON_S)
                    except httpx2.HTTPError as error:
                        self.away[url] = repr(error)
                        continue
                    if answer.status_code != 200:
                        self.away[url] = answer.json()["status"]
            time.sleep(LOOK_S)

    def call(self) -> None:
        with httpx2.Client(timeout=SOON_S) as client:
            while not self.is_ending:
                url = next(each for each in self._urls if each not in self.away)
                try:
                    status = client.get(f"{url}/openapi.json").status_code
                except httpx2.HTTPError as error:
                    self.failed.append(repr(error))
                    continue
                self.calls.append((time.monotonic(), url, status))
                if status != 200:
                    self.failed.append(str(status))


@contextmanager
def _draining(folder: Path, drain_s: float = DRAIN_S) -> Iterator[Server]:
    folder.mkdir(exist_ok=True)
    deployment = Deployment(folder, forks=False)
    deployment.configure('plugins = ["sandbox"]', server=f"drain_s = {drain_s}")
    server = deployment.start()
    try:
        yield server
    finally:
        server.kill()
