"""Packages that only some installations need: which extra of the core brings them."""

from importlib.util import find_spec


def check_installed(module: str, what: str, extra: str) -> None:
    """Raises ValueError, which names the extra, if `module` is not installed. Imports no more than
    the packages around it."""
    try:
        is_there = find_spec(module) is not None
    except ModuleNotFoundError:
        # Of a package around it.
        is_there = False
    if not is_there:
        raise ValueError(
            f"{what} needs {module}; install it with `pip install 'msgsvc-core[{extra}]'`"
        )
