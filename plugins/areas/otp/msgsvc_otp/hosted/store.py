"""The SQL of hosted pages for codes."""

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import for_update
from msgsvc_otp.hosted.models import CodePage

_PAGE = (
    "token_digest, project_id, first_otp_id, otp_id, return_url, lang, expires_at_ms, result_taken"
)


async def insert(tx: Tx, page: CodePage) -> None:
    await tx.insert(
        "otp_pages",
        {
            "token_digest": page.token_digest,
            "project_id": page.project_id,
            "first_otp_id": page.first_otp_id,
            "otp_id": page.otp_id,
            "return_url": page.return_url,
            "lang": page.lang,
            "expires_at_ms": page.expires_at_ms,
        },
    )


async def find(tx: Tx, token_digest: str) -> CodePage | None:
    """Of any project: the address of a page is a secret."""
    row = await tx.fetch_one(
        f"SELECT {_PAGE} FROM otp_pages WHERE token_digest = :token_digest",
        {"token_digest": token_digest},
    )
    return _page(row)


async def lock(tx: Tx, token_digest: str) -> CodePage | None:
    """Like `find`; who else locks it waits until the transaction ends."""
    row = await tx.fetch_one(
        f"SELECT {_PAGE} FROM otp_pages WHERE token_digest = :token_digest"
        + for_update(tx.dialect),
        {"token_digest": token_digest},
    )
    return _page(row)


async def set_code(tx: Tx, page: CodePage, otp_id: str) -> None:
    """The page asks for another code from now on."""
    await tx.execute(
        "UPDATE otp_pages SET otp_id = :otp_id WHERE project_id = :project_id"
        " AND token_digest = :token_digest",
        {"project_id": page.project_id, "token_digest": page.token_digest, "otp_id": otp_id},
    )


async def set_result(tx: Tx, page: CodePage, result_digest: str) -> None:
    await tx.execute(
        "UPDATE otp_pages SET result_digest = :result_digest WHERE project_id = :project_id"
        " AND token_digest = :token_digest",
        {
            "project_id": page.project_id,
            "token_digest": page.token_digest,
            "result_digest": result_digest,
        },
    )


async def take_result(
    tx: Tx, project_id: str, result_digest: str, *, valid_after_ms: int
) -> CodePage | None:
    """Marks a result as taken; None if it was taken before, is too old or does not exist. Of concurrent
    calls, one succeeds."""
    row = await tx.fetch_one(
        "UPDATE otp_pages SET result_taken = :taken WHERE project_id = :project_id"
        " AND result_digest = :result_digest AND result_taken = :free"
        f" AND expires_at_ms > :valid_after_ms RETURNING {_PAGE}",
        {
            "project_id": project_id,
            "result_digest": result_digest,
            "taken": True,
            "free": False,
            "valid_after_ms": valid_after_ms,
        },
    )
    return _page(row)


def _page(row: Row | None) -> CodePage | None:
    if row is None:
        return None
    return CodePage(
        token_digest=row["token_digest"],
        project_id=row["project_id"],
        first_otp_id=row["first_otp_id"],
        otp_id=row["otp_id"],
        return_url=row["return_url"],
        lang=row["lang"],
        expires_at_ms=row["expires_at_ms"],
        result_taken=bool(row["result_taken"]),
    )
