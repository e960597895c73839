"""Sign-in on Telegram's own page, "Log in with Telegram": OpenID Connect with Telegram as the provider."""

from msgsvc_telegram.login.client import TelegramLogin

__all__ = ["TelegramLogin"]
