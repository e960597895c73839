"""The plugin's objects, built from parts of the core."""
