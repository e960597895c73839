"""System messages: what bots send on their own, such as questions and confirmations."""
