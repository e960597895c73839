"""Sign-in through messengers: a question in the bot, a single-use code for the site."""
