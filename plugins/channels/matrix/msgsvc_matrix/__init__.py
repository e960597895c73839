"""Matrix as a channel of msgsvc: a bot on a homeserver, by the client-server API."""
