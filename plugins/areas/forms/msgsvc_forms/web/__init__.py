"""The web's face of a form: `/f/{form_id}`, as a ready page, and for pages of sites' own."""
