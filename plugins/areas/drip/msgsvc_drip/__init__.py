"""Drip campaigns: series of messages, sent step by step to each enrolled subscriber."""
