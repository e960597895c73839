"""The bot for customers: their messages, threads and ratings."""
