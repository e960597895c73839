"""Broadcasts: one message to an audience, with progress, pause and cancel."""
