"""Chains of messages that people are led through, one step after the other."""
