"""Business hours and service levels: when tickets are due."""
