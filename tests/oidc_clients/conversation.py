"""How the Python scripts talk with the test that runs them: see programs.py."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

config: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}


def ask(name: str, **values: Any) -> Any:
    """The test's answer to a question."""
    _say({"ask": name, **values})
    return json.loads(sys.stdin.readline())


def play(scenarios: Mapping[str, Callable[[], Any]]) -> None:
    """Runs the scenario that the configuration names, and tells its result."""
    _say({"result": scenarios[config["scenario"]]()})


def _say(said: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
