"""Signing keys: published before they sign, and for a time after."""
