"""`msgsvc demo`: everything at once, on this machine, with a tour that checks itself."""
