"""Canned answers: texts that a project writes once, and answers with by key."""
