"""Outbound calls of a channel: rate limits, order, circuit breaker, concurrency."""
