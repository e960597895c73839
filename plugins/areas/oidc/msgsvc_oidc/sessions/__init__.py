"""Sessions of browsers with this provider."""
