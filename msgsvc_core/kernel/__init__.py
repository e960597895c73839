"""Product-independent foundations of all layers: time, ids, errors, JSON, translations."""
