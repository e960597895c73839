"""Email for msgsvc."""
