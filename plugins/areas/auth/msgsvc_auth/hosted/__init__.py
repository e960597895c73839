"""The hosted sign-in page: `/login/{slug}`, for sites that want no front end of their own."""
