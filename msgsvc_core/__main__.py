"""The `msgsvc` script, which `python -m msgsvc_core` is too."""

import gc
import sys
from types import ModuleType
from typing import cast


def main() -> None:
    """Runs the command; Ctrl-C while its modules are loaded ends it without a traceback."""
    # What is loaded stays: looking through it for garbage took a sixth of the imports' CPU time.
    gc.disable()
    try:
        load_structlog_without_rich()
        from msgsvc_core.cli.main import app  # noqa: PLC0415 - it takes a second
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.enable()
    app()


def load_structlog_without_rich() -> None:
    """structlog loads rich if it is installed, for tracebacks in colour, which our logs do not have: 5 MiB of
    a process and an eighth of a second of its start. Here alone: another program may want them."""
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = cast("ModuleType", None)
    try:
        import structlog  # noqa: F401, PLC0415 - for what it loads, while rich can't be found
    finally:
        del sys.modules["rich"]


if __name__ == "__main__":
    main()
