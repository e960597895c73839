"""`msgsvc listen`: a project's events, forwarded to a developer's machine."""
