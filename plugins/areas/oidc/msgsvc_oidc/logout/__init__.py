"""Logout: ends a browser's session with the provider, and leads back to the client that asked."""
