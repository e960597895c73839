"""SMS as a channel: by SMPP 3.4, or by a provider's HTTP API."""
