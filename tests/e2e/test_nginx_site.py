"""The site in contrib/deploy, in a real nginx before a real service."""

import grp
import os
import pwd
import shutil
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from msgsvc_devkit.certificates import write_certificate
from tests.ports import free_ports
from tests.process import PATIENCE_S, Deployment

SITE = Path(__file__).parents[2] / "contrib" / "deploy" / "nginx.conf"

NGINX = shutil.which("nginx")

#: Seconds of the drain.
DRAIN_S = 2

#: What stands around sites, of the tester's own: folders, and whose they are.
AROUND = """\
daemon off;
user {user} {group};
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  include {folder}/site.conf;
}}
"""

pytestmark = [
    pytest.mark.skipif(
        NGINX is None, reason="no nginx on the PATH: apt-get install nginx-light (/usr/sbin)"
    ),
    pytest.mark.slow,
]


@pytest.mark.parametrize("by", ["port", "unix socket"])
def test_the_site_lets_through_what_is_for_strangers_and_nothing_else(
    tmp_path: Path, by: str
) -> None:
    deployment = Deployment(tmp_path)
    uds = f'uds = "{tmp_path / "msgsvc.sock"}"'
    server_lines = 'trusted_proxies = ["127.0.0.1"]' if by == "port" else uds
    toml = 'plugins = ["forms", "sandbox"]\nbase_url = "https://msgsvc.example"'
    deployment.configure(toml, server=server_lines)
    key = deployment.create_key()
    with deployment.serving() as server, _nginx(tmp_path, server.url) as client:
        owner = {"Authorization": f"Bearer {key}"}
        content = b"%PDF-1.7\n" + bytes(3_000_000)
        stored = client.post("/v1/files", files={"file": ("a.pdf", content)}, headers=owner)
        read = client.get(f"/v1/files/{stored.json()['file_id']}/content", headers=owner)
        large = client.post("/v1/send", content=b" " * 1_500_000, headers=owner)
        form = client.post("/v1/forms", json=FORM, headers=owner).json()
        sent = [
            client.post(
                f"/f/{form['form_id']}",
                json={"name": "Ann"},
                headers={"Accept": "*/*", "X-Forwarded-For": f"203.0.113.{number}"},
            ).status_code
            for number in range(6)
        ]
        shut = [client.get(path).status_code for path in ("/sandbox", "/readyz", "/metrics")]
        open_ = client.get("/healthz")

    assert stored.status_code == 201, stored.text
    assert read.content == content
    assert (large.status_code, large.json()["code"]) == (413, "payload_too_large")
    # Five a minute from one address, whatever it says of itself.
    assert sent == [201] * 5 + [429]
    assert shut == [404] * 3
    assert open_.status_code == 200
    assert open_.headers.get_list("strict-transport-security") == ["max-age=31536000"]


def test_no_request_fails_while_one_of_two_processes_stops(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path, forks=False)
    deployment.configure('plugins = ["sandbox"]', server=f"drain_s = {DRAIN_S}")
    owner = {"Authorization": f"Bearer {deployment.create_key()}"}
    first = deployment.start()
    answers = Counter[int]()
    ended = threading.Event()
    with deployment.serving() as second, _nginx(tmp_path, first.url, second.url) as client:

        def call() -> None:
            while not ended.is_set():
                answer = client.get("/v1/project", headers=owner)
                answers[answer.status_code] += 1

        callers = [threading.Thread(target=call) for _ in range(4)]
        for caller in callers:
            caller.start()
        first.end()
        before = answers.total()
        time.sleep(1)
        ended.set()
        for caller in callers:
            caller.join(PATIENCE_S)

    assert answers.total() > before > 0
    faults = [status for status in answers if status >= 500]
    assert not faults, f"{answers}: {(tmp_path / 'error.log').read_text()}"


FORM = {
    "slug": "contact",
    "title": "Contact",
    "min_fill_seconds": 0,
    "fields": [{"key": "name", "type": "text", "label": "Name"}],
}


@contextmanager
def _nginx(folder: Path, behind: str, second: str | None = None) -> Iterator[httpx2.Client]:
    """A client of an nginx with our site before the service at `behind`, and a `second` process of it."""
    assert NGINX is not None
    port = free_ports()
    certificate = write_certificate(folder / "fullchain.pem", "127.0.0.1")
    shutil.copyfile(certificate, folder / "key.pem")
    site = SITE.read_text()
    places = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "listen [::]:443 ssl http2;": "",
        "/etc/ssl/msgsvc/": f"{folder}/",
        "server 127.0.0.1:8000": f"server {behind.removeprefix('http://')}",
    }
    if second is not None:
        places["# server 127.0.0.1:8001"] = f"server {second.removeprefix('http://')}"
    for ours, here in places.items():
        assert site.count(ours) >= 1, f"{ours} is not in the site any more"
        site = site.replace(ours, here)
    (folder / "site.conf").write_text(site)
    user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder, user=user, group=group))
    trusted = ssl.create_default_context(cafile=str(folder / "fullchain.pem"))
    with subprocess.Popen(
        [NGINX, "-c", folder / "nginx.conf", "-e", folder / "error.log"]
    ) as process:
        try:
            with httpx2.Client(base_url=f"https://127.0.0.1:{port}", verify=trusted) as client:
                _wait(client, process, folder)
                yield client
        finally:
            process.terminate()


def _wait(client: httpx2.Client, process: subprocess.Popen[bytes], folder: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            client.get("/healthz")
        except httpx2.ConnectError:
            log = folder / "error.log"
            assert process.poll() is None, log.read_text() if log.exists() else "nginx has ended"
            assert time.monotonic() < until, "nginx does not answer"
            time.sleep(0.05)
        else:
            return
