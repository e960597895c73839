"""The hosted sign-in page: `/login/{slug}`, for sites without a front end of their own."""
