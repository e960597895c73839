"""Pages on which a button is pressed, where a platform has only buttons that open URLs, such as email."""

from msgsvc_core.channels.button_pages.service import ButtonPages

__all__ = ["ButtonPages"]
