"""The HTTP edge: from bytes to typed handlers and back."""
