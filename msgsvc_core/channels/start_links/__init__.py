"""Links, QR codes and words that start a bot."""
