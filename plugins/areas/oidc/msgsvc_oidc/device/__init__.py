"""Device authorization (RFC 8628): a device shows a code, which a person enters elsewhere."""
