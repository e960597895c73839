"""The plugin interface: hooks, discovery and loading."""
