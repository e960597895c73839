"""Project channels: bots added by projects."""
