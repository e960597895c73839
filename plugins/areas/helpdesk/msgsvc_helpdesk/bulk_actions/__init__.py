"""Bulk actions on tickets."""
