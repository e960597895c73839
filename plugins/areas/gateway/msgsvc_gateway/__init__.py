"""A gateway: other servers, which know HTTP providers of SMS alone, send through this service's channels."""
