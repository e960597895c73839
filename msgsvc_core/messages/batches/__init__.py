"""Batches: up to 500 messages by one call, and one event when all of them are final."""
