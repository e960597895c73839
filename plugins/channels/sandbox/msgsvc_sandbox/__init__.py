"""A messenger in the browser, for developing and testing without a real one."""
