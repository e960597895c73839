"""Signed webhooks: a project's events, delivered to its own servers."""
