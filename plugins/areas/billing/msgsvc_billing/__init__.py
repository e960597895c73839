"""Plans, credits, and what they were spent on."""
