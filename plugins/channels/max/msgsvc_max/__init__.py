"""The MAX messenger for msgsvc."""
