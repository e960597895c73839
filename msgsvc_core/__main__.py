"""The `msgsvc` script, which `python -m msgsvc_core` is too."""

import sys


def main() -> None:
    """Runs the command; Ctrl-C while its modules are loaded ends it without a traceback."""
    try:
        from msgsvc_core.cli.main import app  # noqa: PLC0415 - it takes a second
    except KeyboardInterrupt:
        sys.exit(130)
    app()


if __name__ == "__main__":
    main()
