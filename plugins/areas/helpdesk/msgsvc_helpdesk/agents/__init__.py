"""Agents inside the messenger: told of tickets there, and answering by what they write to the bot."""
