"""The HTTP layer: typed endpoints, request validation, responses and errors."""
