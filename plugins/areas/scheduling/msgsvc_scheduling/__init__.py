"""Scheduled and recurring messages."""
