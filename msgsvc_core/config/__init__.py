"""The settings: their sections and sources."""
