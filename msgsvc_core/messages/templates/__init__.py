"""Templates: messages that a project writes once, per language, and sends with variables."""

from msgsvc_core.messages.templates.service import Templates

__all__ = ["Templates"]
