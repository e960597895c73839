"""A real Prometheus on this machine, with the files of `contrib/deploy`."""

import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import yaml

from msgsvc_devkit.deadlines import patient
from tests.monitoring.tools import ALERTS, CONFIGURATION, alerts, program, rules
from tests.ports import free_ports
from tests.process import until

#: Seconds between two scrapes, and between two evaluations of the rules.
EVERY_S = 1

#: What stands for `for` of every rule.
SHORT = "1s"

#: Rules that ask that nothing has happened in a window, which a run would have to sit out, and the seconds
#: that stand for the window. What is done once stays in it while a slow machine misses a scrape or two.
SHORT_WINDOWS = {
    "MsgsvcNobodySignsIn": ("30m", 12),
    "MsgsvcMessagesWait": ("5m", 3),
    "MsgsvcPoolExhausted": ("5m", 3),
}

#: Seconds that Prometheus gets to start or to end.
PATIENCE_S = patient(60)


class Prometheus:
    """Its API."""

    def __init__(self, url: str) -> None:
        self._client = httpx2.Client(base_url=url, timeout=PATIENCE_S)
        #: Every alert that has fired so far, as it was when it was seen first, by its name.
        self.fired: dict[str, dict[str, Any]] = {}

    def close(self) -> None:
        self._client.close()

    def is_ready(self) -> bool:
        try:
            return self._client.get("/-/ready").status_code == 200
        except httpx2.TransportError:
            return False

    def get(self, path: str, **parameters: Any) -> Any:
        """The data of an answer. Raises `AssertionError` with what Prometheus says of a wrong query."""
        answer = self._client.get(f"/api/v1/{path}", params=parameters)
        found = answer.json()
        assert found["status"] == "success", f"{parameters}: {found.get('error')}"
        return found["data"]

    def look(self) -> set[str]:
        """The names of the alerts that fire now; notes those that have not fired before."""
        firing = [each for each in self.get("alerts")["alerts"] if each["state"] == "firing"]
        for each in firing:
            self.fired.setdefault(each["labels"]["alertname"], each)
        return {each["labels"]["alertname"] for each in firing}

    def wait_for(self, *names: str) -> None:
        """Returns once each of these alerts has fired. Raises `AssertionError` with those that have not."""
        deadline = time.monotonic() + PATIENCE_S
        while missing := set(names) - self.look() - set(self.fired):
            assert time.monotonic() < deadline, f"not fired: {sorted(missing)}"
            time.sleep(0.1)

    def value(self, query: str) -> float | None:
        """The first value of a query at this time; None without one."""
        found = self.get("query", query=query)["result"]
        return float(found[0]["value"][1]) if found else None


def configure(folder: Path, targets: Sequence[str]) -> Path:
    """The files of `contrib/deploy`, but for targets and times."""
    groups = alerts()
    for rule in rules(groups):
        if "for" in rule:
            rule["for"] = SHORT
        if rule["alert"] in SHORT_WINDOWS:
            window, short_s = SHORT_WINDOWS[rule["alert"]]
            rule["expr"], count = re.subn(rf"\[{window}\]", f"[{short_s}s]", rule["expr"])
            assert count, f"{rule['alert']} has no window of {window}"
    (folder / ALERTS.name).write_text(yaml.safe_dump(groups), "utf-8")
    written = yaml.safe_load(CONFIGURATION.read_text("utf-8"))
    written["global"] |= {"scrape_interval": f"{EVERY_S}s", "evaluation_interval": f"{EVERY_S}s"}
    [job] = written["scrape_configs"]
    job["static_configs"] = [{"targets": list(targets)}]
    path = folder / CONFIGURATION.name
    path.write_text(yaml.safe_dump(written), "utf-8")
    return path


@contextmanager
def running(folder: Path, targets: Sequence[str]) -> Iterator[Prometheus]:
    """Prometheus, which has ended when the block has."""
    configuration, port = configure(folder, targets), free_ports()
    log = folder / "prometheus.log"
    command = [
        program("prometheus"),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=errors, stderr=errors)
    api = Prometheus(f"http://127.0.0.1:{port}")
    try:
        until(lambda: process.poll() is not None or api.is_ready(), timeout_s=PATIENCE_S)
        assert process.poll() is None, log.read_text()
        yield api
    finally:
        api.close()
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
