"""What every layer uses and that knows nothing of the product: time, ids, errors, JSON, texts."""
