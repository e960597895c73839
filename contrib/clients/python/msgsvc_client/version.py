"""The version of this package, which goes into `User-Agent`."""

__version__ = "0.1.0"
