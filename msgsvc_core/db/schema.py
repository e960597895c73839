"""Compares the schema of a database with that of the code: what is pending, and whether this release may use
a database that a newer one has migrated."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

from msgsvc_core.db.errors import MigrationRefused
from msgsvc_core.db.revisions import (
    Applied,
    AppliedStep,
    DatabaseTooNew,
    MigrationSource,
    Phase,
    Step,
)


@cache
def this_release() -> str:
    """The version of the core; reading it takes a millisecond."""
    return version("msgsvc-core")


@dataclass(frozen=True, slots=True)
class OwnerSchema:
    """One owner's tables, compared with the code."""

    owner: str
    #: Whether it has no tables yet: all its steps then create what nobody uses, in whichever phase.
    is_new: bool
    #: Steps of the code that the database lacks, in order.
    pending: tuple[Step, ...]
    #: Steps of a newer release, which has expanded the database and still lets this release use it.
    ahead: tuple[AppliedStep, ...] = ()

    @property
    def needed(self) -> tuple[Step, ...]:
        """Pending steps without which the code can't run: all up to the last that expands."""
        expanding = [at for at, step in enumerate(self.pending) if step.phase == "expand"]
        if self.is_new:
            return self.pending
        return self.pending[: expanding[-1] + 1] if expanding else ()


Schema = Sequence[OwnerSchema]


def steps_of(source: MigrationSource) -> tuple[Step, ...]:
    """An owner's steps, in order. Raises `PluginError` if its scripts are not one sequence, or one has no
    phase."""
    steps = source.read_steps()
    if steps is None:
        from msgsvc_core.db import scripts  # noqa: PLC0415 - loads Alembic, 16 MiB

        steps = scripts.read_steps(source)
    return steps


def compare(sources: Sequence[MigrationSource], applied: Mapping[str, Applied]) -> Schema:
    """Raises `DatabaseTooNew` with the steps that this release does not know, unless it may run with them."""
    schema = list[OwnerSchema]()
    unknown = list[tuple[str, AppliedStep]]()
    for source in sources:
        found = applied[source.owner]
        steps = steps_of(source)
        revisions = [step.revision for step in steps]
        if found.revision is None:
            schema.append(OwnerSchema(source.owner, True, steps))
        elif found.revision in revisions:
            rest = steps[revisions.index(found.revision) + 1 :]
            schema.append(OwnerSchema(source.owner, False, rest))
        else:
            later = _after(found, revisions)
            if later is not None and all(step.phase == "expand" for step in later):
                schema.append(OwnerSchema(source.owner, False, (), later))
            else:
                later = later or (AppliedStep(found.revision, "contract", ""),)
                unknown += [(source.owner, step) for step in later]
    if unknown:
        raise DatabaseTooNew(_too_new(unknown))
    return schema


def _after(found: Applied, revisions: Sequence[str]) -> tuple[AppliedStep, ...] | None:
    """The recorded steps after the last of `revisions`; None if the record does not lead from there to the
    database's revision."""
    recorded = [step.revision for step in found.history]
    if not revisions or revisions[-1] not in recorded or recorded[-1] != found.revision:
        return None
    return found.history[recorded.index(revisions[-1]) + 1 :]


def _too_new(unknown: Sequence[tuple[str, AppliedStep]]) -> str:
    steps = ", ".join(
        f"{owner}:{step.revision}" + (f" (of {step.release})" if step.release else "")
        for owner, step in unknown
    )
    here = this_release()
    return (
        f"the database is newer than this release, {here}, which does not know {steps}: run the release that"
        " migrated it, or a later one. To go back, restore the backup from before the upgrade with this"
        " release into an empty database (`msgsvc restore FILE`); what was written since is lost"
    )


def due(schema: Schema, phase: Phase | None) -> list[Step]:
    """The pending steps of a phase, in the order to run them; without one, of both.

    The halves are those of releases: whoever skips one has a step that expands behind one that contracts.
    Without a phase all are taken in turn; with one, only as far as possible while processes serve. Raises
    `MigrationRefused` if this phase can't be run.
    """
    left = {each.owner: list(each.pending) for each in schema}
    found = list[Step]()
    if phase != "contract":
        for each in schema:
            if each.is_new:
                found += left[each.owner]
                left[each.owner] = []
    if phase is None:
        while any(left.values()):
            found += [*_leading(left, "expand"), *_leading(left, "contract")]
        return found
    found += _leading(left, phase)
    if phase == "expand":
        _check_none_skipped(left)
    elif behind := [step.name for each in schema for step in each.pending[:1] if step not in found]:
        raise MigrationRefused(
            f"{', '.join(behind)} come first: run `msgsvc migrate --phase expand` and start this release"
        )
    return found


def _leading(left: Mapping[str, list[Step]], phase: Phase) -> Iterator[Step]:
    """Removes and returns each owner's first steps of a phase."""
    for steps in left.values():
        while steps and steps[0].phase == phase:
            yield steps.pop(0)


def _check_none_skipped(left: Mapping[str, Sequence[Step]]) -> None:
    skipped = [
        steps[0].name for steps in left.values() if any(step.phase == "expand" for step in steps)
    ]
    if skipped:
        raise MigrationRefused(
            f"{', '.join(skipped)} of an earlier release have to be applied before steps of this one: run"
            " `msgsvc migrate --phase contract` with the release that is in use, or stop all processes and"
            " run `msgsvc migrate`"
        )
