"""A stranger's channel plugin, installed by pip from a folder of theirs; the core stays as it is."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.process import Deployment, Server, until

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_channel"


class Letterbox:
    """The person's side of the messenger: its two places in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, update_id: str, **update: Any) -> None:
        """Does something as a person: a file appears in the inbox."""
        new = self._folder / "new"
        new.write_text(json.dumps(update))
        new.rename(self._folder / "inbox" / f"{update_id}.json")

    def texts(self) -> list[str]:
        """What the bot has said."""
        letters = sorted((self._folder / "outbox").glob("*.json"))
        return [json.loads(letter.read_text())["text"] for letter in letters]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip has put the plugin, from a copy outside of the repository."""
    folder = tmp_path_factory.mktemp("elsewhere")
    source = shutil.copytree(EXAMPLE, folder / "source")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run(
        [*pip, "--no-build-isolation", "--target", folder / "installed", source], check=True
    )
    return folder / "installed"


@pytest.fixture
def deployment(installed: Path, tmp_path: Path) -> Deployment:
    made = Deployment(tmp_path, [installed])
    made.configure(
        'plugins = ["letterbox"]\n'
        "[channels.messenger_a]\n"
        'plugin = "letterbox"\n'
        f'folder = "{tmp_path / "letterbox"}"\n'
        "poll_s = 0.02\n"
    )
    return made


@pytest.fixture
def server(deployment: Deployment) -> Iterator[Server]:
    with deployment.serving() as running:
        yield running


@pytest.fixture
def client(deployment: Deployment, server: Server) -> Iterator[httpx2.Client]:
    headers = {"Authorization": f"Bearer {deployment.create_key()}"}
    with httpx2.Client(base_url=server.url, headers=headers) as made:
        yield made


@pytest.fixture
def letterbox(deployment: Deployment) -> Letterbox:
    return Letterbox(deployment.folder / "letterbox")


def subscribe(client: httpx2.Client, letterbox: Letterbox, user: str) -> str:
    """Has a person open a link; returns their subscriber_id."""
    link = client.post("/v1/subscribers/links", json={}).json()["links"]["messenger_a"]
    payload = link.removeprefix("letterbox:messenger_a?start=")
    letterbox.put(f"start-{user}", kind="start", user=user, name=user.title(), payload=payload)
    found = until(lambda: client.get("/v1/subscribers").json()["data"])
    return str(found[0]["subscriber_id"])


def test_a_strangers_channel_subscribes_and_delivers_with_the_core_unchanged(
    client: httpx2.Client, letterbox: Letterbox
) -> None:
    subscriber_id = subscribe(client, letterbox, "ann")

    answer = client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "It is here"})
    message = f"/v1/messages/{answer.json()['message_id']}"
    until(lambda: client.get(message).json()["status"] == "sent")

    assert answer.status_code == 202
    assert letterbox.texts() == ["You are subscribed to notifications from Shop.", "It is here"]


def test_what_a_strangers_channel_does_not_take_is_refused_before_it_is_called(
    client: httpx2.Client, letterbox: Letterbox
) -> None:
    subscriber_id = subscribe(client, letterbox, "bob")
    until(letterbox.texts)

    answer = client.post(
        "/v1/send", json={"subscriber_id": subscriber_id, "text": "<b>Hi</b>", "format": "html"}
    )

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
    assert letterbox.texts() == ["You are subscribed to notifications from Shop."]


def test_an_update_that_cannot_be_read_is_put_on_the_shelf_and_the_next_one_taken(
    deployment: Deployment, client: httpx2.Client, letterbox: Letterbox
) -> None:
    letterbox.put("aa-broken", kind="no such kind", user="eve")

    subscriber_id = subscribe(client, letterbox, "eve")

    assert subscriber_id.startswith("sub_")
    shelf = deployment.run("channels", "shelf", "messenger_a")
    assert shelf.count("malformed") == 1
