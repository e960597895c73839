"""The page on which people choose what they get, reachable from every message without a sign-in."""
