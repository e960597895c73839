"""msgsvc: notifications and sign-in through messengers, assembled from plugins."""
