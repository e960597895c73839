"""Tickets and the agents who reply to them, as a plugin of msgsvc."""
