"""Tickets and those who answer them, as a plugin of msgsvc."""
