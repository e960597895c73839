"""Which recipient gets which variant of a mailing."""

import hashlib
from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.mailings import ledger
from msgsvc_core.mailings.models import Mailing


async def assign(tx: Tx, mailing: Mailing, after: str, until: str) -> None:
    """Gives the recipients who a step of the expansion has added their variants, in its transaction."""
    if mailing.experiment is None or mailing.stage == "rest":
        return
    ids = await ledger.list_added(tx, mailing, after, until)
    if mailing.resend_of is not None:
        # Whoever may have got a variant gets no other one.
        before = await ledger.find_variants(tx, mailing.project_id, mailing.resend_of, ids)
        await ledger.set_variants(tx, mailing, before)
        return
    known = mailing.total - mailing.skipped
    chosen = chosen_of(
        mailing.job_id, ids, known, mailing.experiment["share_percent"], len(mailing.variants)
    )
    await ledger.set_variants(tx, mailing, chosen)


def chosen_of(
    job_id: str, subscriber_ids: Sequence[str], known: int, share_percent: int, variants: int
) -> dict[str, int]:
    """The numbers of the variants for those of `subscriber_ids` who get one, by subscriber.

    `known` recipients were assigned before: all together, `share_percent` of the recipients get a variant,
    and each variant as many as the others, but for one. Who they are depends on the hash of mailing and
    subscriber, and not on the order in which people subscribed.
    """
    before = _share(known, share_percent)
    count = _share(known + len(subscriber_ids), share_percent) - before
    by_hash = sorted(subscriber_ids, key=lambda each: _hash(job_id, each))
    return {each: (before + place) % variants for place, each in enumerate(by_hash[:count])}


def _share(recipients: int, percent: int) -> int:
    """That share of the recipients, rounded half up."""
    return (recipients * percent + 50) // 100


def _hash(job_id: str, subscriber_id: str) -> bytes:
    return hashlib.blake2b(f"{job_id}:{subscriber_id}".encode(), digest_size=16).digest()
