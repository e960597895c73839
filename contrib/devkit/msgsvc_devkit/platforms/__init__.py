"""Fake platforms: servers that behave as a messenger's documentation says, and people who use it."""
