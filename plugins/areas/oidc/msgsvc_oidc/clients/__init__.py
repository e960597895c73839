"""Clients: the software that signs people in, with its secrets and redirect URIs."""
