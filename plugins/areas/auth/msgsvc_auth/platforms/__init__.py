"""Sign-ins on the page of a platform, instead of in a chat with the bot."""
