"""Agents in messengers: notified of tickets by the bot, and replying through it."""
