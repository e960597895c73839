"""The agents of a project: their settings, automatic assignment, and who has which ticket open."""
