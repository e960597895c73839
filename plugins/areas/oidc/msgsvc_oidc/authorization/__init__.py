"""The authorization endpoint: sign-in on the hosted page, consent, and the way back to the client."""
