"""`msgsvc demo`: everything at once, on this machine, with a tour that checks itself."""

from msgsvc_core.cli.demo.command import demo

__all__ = ["demo"]
