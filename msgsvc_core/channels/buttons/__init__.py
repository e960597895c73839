"""Buttons on platforms without them."""
