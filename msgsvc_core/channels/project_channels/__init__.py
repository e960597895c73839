"""Channels that projects bring themselves: their own bots."""
