"""What a message holds: text with markup, files, buttons, and values put into templates."""
