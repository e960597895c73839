"""Grants: what a person allowed a client, and the codes and tokens that refer to it."""
