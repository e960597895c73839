"""Users of the sandbox messenger, in this process or over HTTP."""

from msgsvc_devkit.platforms.sandbox.people import Sandbox, SandboxPerson

__all__ = ["Sandbox", "SandboxPerson"]
