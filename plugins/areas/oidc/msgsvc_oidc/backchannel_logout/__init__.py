"""Back-channel logout: clients are notified of sessions that ended, by signed tokens that jobs deliver."""
