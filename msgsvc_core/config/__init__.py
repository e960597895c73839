"""The settings: their sections, and where they are read from."""
