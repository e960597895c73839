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
        load_structlog_alone()
        from msgsvc_core.cli.main import app  # noqa: PLC0415 - it takes a second
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.enable()
    app()


def load_structlog_alone() -> None:
    """structlog loads what it finds of rich, for tracebacks in colour, and greenlet, for contexts of threads:
    6 MiB of a process and an eighth of a second of its start, and our logs have neither. Here alone: another
    program may want them."""
    hidden = [name for name in ("rich", "greenlet") if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = cast("ModuleType", None)
    try:
        import structlog  # noqa: F401, PLC0415 - for what it loads, while the others can't be found
    finally:
        for name in hidden:
            del sys.modules[name]


if __name__ == "__main__":
    main()
