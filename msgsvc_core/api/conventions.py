"""Conventions of all endpoints, for the API description."""

#: Heading and text of each; `code` is in backticks. See docs/guides/api-basics.md for details.
CONVENTIONS = (
    (
        "Authentication",
        (
            "Send the project's API key with every request, as `Authorization: Bearer msk_...` or as"
            " `X-API-Key: msk_...`. A missing key is 401 `unauthorized`, an unknown one 401"
            " `invalid_api_key`, a key without the endpoint's scope 403 `forbidden`."
        ),
    ),
    (
        "Bodies, ids and times",
        (
            "Bodies are JSON objects; unknown fields and parameters are refused, and a compressed body is"
            " 415 `unsupported_media_type`. Ignore unknown fields of"
            " responses. IDs are strings with a prefix such as `sub_`. Times are RFC 3339 in UTC, e.g."
            " `2026-03-01T09:30:00.000Z`."
        ),
    ),
    (
        "Lists",
        (
            "A list returns `data` and `next_cursor`. Pass it as `cursor` to get the next page; it is"
            " `null` on the last page. `limit` is 1 to 100, 50 by default."
        ),
    ),
    (
        "Rate limit",
        (
            "Requests are counted for each project. `X-RateLimit-Limit`, `X-RateLimit-Remaining` and"
            " `X-RateLimit-Reset` (Unix time) report the current window; above the limit the response is 429"
            " `rate_limit_project`, with `Retry-After` in seconds."
        ),
    ),
    (
        "Errors and retries",
        (
            "Every error has `error`, `code`, `retryable` and `docs_url`. Retry `retryable` errors"
            " (425, 429, 500, 503) after `Retry-After` seconds, or with exponential backoff."
        ),
    ),
    (
        "Idempotency keys",
        (
            "A `POST` may carry an `Idempotency-Key`, 8 to 128 characters of `A-Z a-z 0-9 _ -`. Repeated with"
            " the same path and body within 24 hours, it returns the first response again, with"
            " `Idempotent-Replayed: true`, and has no further effect; with another body it is 409"
            " `idempotency_conflict`. After 400, 401, 402, 403, 404, 413, 415, 425, 429 and 5xx the key"
            " is free, except after a wrong one-time code, which was counted."
        ),
    ),
)


def description() -> str:
    """All conventions as Markdown, for the OpenAPI document."""
    return "\n\n".join(f"## {heading}\n\n{text}" for heading, text in CONVENTIONS)
