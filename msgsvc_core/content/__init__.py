"""Message content: text with markup, files, buttons, and template substitution."""
