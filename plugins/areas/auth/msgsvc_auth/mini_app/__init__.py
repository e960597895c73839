"""Sign-in on a page that opens inside the messenger, where its platform says who the person is."""

from msgsvc_auth.mini_app.routes import router as mini_app_router

__all__ = ["mini_app_router"]
