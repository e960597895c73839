"""The async side; the sync side is generated from it."""
