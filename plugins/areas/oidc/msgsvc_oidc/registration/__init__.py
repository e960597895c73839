"""Dynamic client registration: software that registers itself, by a token that the project gave it."""
