"""The dashboard of msgsvc."""
