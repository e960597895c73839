"""The endpoints that clients call: Starlette around the protocol."""
