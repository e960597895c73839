"""Channels that are stopped, paused or unavailable, and the work that waits for them."""
