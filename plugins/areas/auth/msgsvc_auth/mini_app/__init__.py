"""Sign-in on a page inside the messenger, whose platform identifies the user."""

from msgsvc_auth.mini_app.routes import router as mini_app_router

__all__ = ["mini_app_router"]
