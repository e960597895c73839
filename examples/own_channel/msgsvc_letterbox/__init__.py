"""A messenger made of files: messages go to an outbox, updates come from an inbox."""
