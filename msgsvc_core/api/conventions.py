"""Conventions of all endpoints, for the API description."""

#: Heading and text of each; `code` stands in backticks. docs/guides/api-basics.md says it at length.
CONVENTIONS = (
    (
        "Authentication",
        (
            "Send the project's API key with every request, as `Authorization: Bearer msk_...` or as"
            " `X-API-Key: msk_...`. Without one the answer is 401 `unauthorized`, with an unknown one 401"
            " `invalid_api_key`, and outside of the key's areas 403 `forbidden`."
        ),
    ),
    (
        "Bodies, ids and times",
        (
            "Bodies are JSON objects; fields and parameters that do not exist are refused. Ignore fields"
            " of answers that you don't know. Ids are texts with a prefix such as `sub_`. Times are RFC 3339"
            " in UTC, as `2026-03-01T09:30:00.000Z`."
        ),
    ),
    (
        "Lists",
        (
            "A list answers with `data` and `next_cursor`. Send it as `cursor` for the next page; it is"
            " `null` on the last one. `limit` is 1 to 100, 50 by default."
        ),
    ),
    (
        "Rate limit",
        (
            "Requests are counted for each project. `X-RateLimit-Limit`, `X-RateLimit-Remaining` and"
            " `X-RateLimit-Reset` (Unix time) say where it stands; beyond it the answer is 429"
            " `rate_limit_project`, with `Retry-After` in seconds."
        ),
    ),
    (
        "Errors and retries",
        (
            "Every error has `error`, `code`, `retryable` and `docs_url`. Repeat what is `retryable`"
            " (425, 429, 500, 503) after `Retry-After` seconds, or after growing waits."
        ),
    ),
    (
        "Idempotency keys",
        (
            "A `POST` may carry an `Idempotency-Key`, 8 to 128 characters of `A-Z a-z 0-9 _ -`. Repeated with"
            " the same path and body within 24 hours, it gives the first answer again, marked"
            " `Idempotent-Replayed: true`, and has no further effect; with another body it is 409"
            " `idempotency_conflict`. After 400, 401, 403, 413, 425, 429 and 5xx the key is free."
        ),
    ),
)


def description() -> str:
    """All of it as Markdown, for the OpenAPI document."""
    return "\n\n".join(f"## {heading}\n\n{text}" for heading, text in CONVENTIONS)
