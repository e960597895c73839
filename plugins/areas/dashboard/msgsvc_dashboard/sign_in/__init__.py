"""Pages without a session: password, code, messenger, one-time links; and signing out."""

from msgsvc_dashboard.sign_in.pages import SignInPages

__all__ = ["SignInPages"]
