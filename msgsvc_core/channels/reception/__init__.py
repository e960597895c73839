"""Receiving: polling and webhooks of each bot, in the process that leases it."""
