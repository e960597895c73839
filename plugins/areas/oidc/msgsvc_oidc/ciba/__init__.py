"""Backchannel authentication (OpenID CIBA Core 1.0): a client has one person asked in their messenger."""
