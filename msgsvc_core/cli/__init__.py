"""The command line, `msgsvc`: `main` puts it together, one file holds one group of commands."""
