"""Writes new plugins: packages that install, pass their conformance kit, and show where to go on."""
