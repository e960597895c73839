"""The journal of sign-ins: who signed in to a client, and why others could not."""
