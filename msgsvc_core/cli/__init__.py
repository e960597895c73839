"""The command line, `msgsvc`: `main` puts them together, one file holds one group of commands."""
