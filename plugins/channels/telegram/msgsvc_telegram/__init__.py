"""Telegram bots as channels: the Bot API over HTTP, by webhook or long polling."""
