"""One-time codes through messengers, as a plugin of msgsvc."""
