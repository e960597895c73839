"""Broadcasts: one message to an audience, watched, paused and cancelled by the API."""
