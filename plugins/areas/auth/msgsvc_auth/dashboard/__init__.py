"""Sign-in pages of the dashboard: links, a test sign-in, and recent sign-ins."""

from msgsvc_auth.dashboard import figures
from msgsvc_auth.dashboard.pages import pages

__all__ = ["figures", "pages"]
