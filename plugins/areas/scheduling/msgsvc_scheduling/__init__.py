"""Scheduling: messages that are sent at a time, once or again and again."""
