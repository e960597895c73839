"""The command `/apps`: people see what they allowed, and revoke it."""
