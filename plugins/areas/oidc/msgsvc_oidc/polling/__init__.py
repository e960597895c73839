"""Requests for which a client polls the token endpoint: those of devices, and backchannel requests."""
