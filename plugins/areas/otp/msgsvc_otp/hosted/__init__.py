"""The hosted page for codes: `/code/{token}`, for sites without a form of their own."""
