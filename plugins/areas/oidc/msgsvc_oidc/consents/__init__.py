"""Consents: what a person agreed that a client learns, and may do."""
