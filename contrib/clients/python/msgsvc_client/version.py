"""The version of this package, which goes into `User-Agent`."""

from importlib.metadata import version

__version__ = version("msgsvc-client")
