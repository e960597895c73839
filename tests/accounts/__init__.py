"""Who signs in to the dashboard, as the core sees to it."""
