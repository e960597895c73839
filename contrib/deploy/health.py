"""The image's health check: exits with 0 if the container's service or worker answers `GET /healthz`."""

import os
import sys
from http.client import HTTPConnection, HTTPException

#: Variables of the ports, with the setting's default; 0 is none. A container runs one of the two.
PORTS = (("MSGSVC_SERVER__PORT", 8000), ("MSGSVC_METRICS__WORKER_PORT", 0))

#: Seconds for an answer; less than the timeout in the Containerfile, for both ports.
TIMEOUT_S = 2.0


def answers(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    ports = [int(os.environ.get(name, default)) for name, default in PORTS]
    sys.exit(not any(answers(port) for port in ports if port))
