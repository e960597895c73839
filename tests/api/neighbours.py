"""Two tenants as a process of their own: one exports six times at once, the other measures its requests.

In the service's process they would wait for its interpreter. `python -m tests.api.neighbours PORT KEY KEY`.
"""

import contextlib
import http.client
import json
import sys
import threading
import time

EXPORTS = 6


def ask(port: int, key: str, path: str) -> tuple[int, int]:
    """The status of an answer, and its size."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        return answer.status, len(answer.read())


def request_ms(port: int, key: str) -> float:
    """How long a small request takes."""
    began_s = time.perf_counter()
    status, _ = ask(port, key, "/v1/project")
    assert status == 200
    return (time.perf_counter() - began_s) * 1000


def main(port: int, exporting: str, other: str) -> None:
    """Prints the times of requests before and during the exports, and the answers to these."""
    idle = [request_ms(port, other) for _ in range(50)]
    answers: list[tuple[int, int]] = []
    exports = [
        threading.Thread(
            target=lambda: answers.append(ask(port, exporting, "/v1/subscribers/export"))
        )
        for _ in range(EXPORTS)
    ]
    for export in exports:
        export.start()
    busy = [request_ms(port, other)]
    while any(export.is_alive() for export in exports):
        busy.append(request_ms(port, other))
    sys.stdout.write(json.dumps({"idle": idle, "busy": busy, "answers": answers}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
