"""WhatsApp for msgsvc, by the Business Cloud API."""
