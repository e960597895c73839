"""Plans, credits and their usage."""
