"""The edge of the API: from a request to an endpoint's handler, and the pages that describe and watch it."""
