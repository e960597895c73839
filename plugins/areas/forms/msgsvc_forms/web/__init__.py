"""Forms on the web: `/f/{form_id}`, as a hosted page, and as an endpoint for pages of sites."""
