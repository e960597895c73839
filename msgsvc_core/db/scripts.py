"""Migration scripts as Alembic reads them. Import this only if that is needed, as `migrations`."""

from typing import cast

from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.script.revision import RevisionError
from alembic.util.exc import CommandError

from msgsvc_core.db.revisions import MigrationSource, Phase, Step
from msgsvc_core.kernel.hooks import PluginError


def scripts_of(source: MigrationSource) -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(source.folder))
    config.set_main_option("version_locations", str(source.folder))
    config.set_main_option("path_separator", "newline")
    return ScriptDirectory.from_config(config)


def read_steps(source: MigrationSource) -> tuple[Step, ...]:
    """As `schema.steps_of`, by executing the scripts."""
    try:
        scripts = list(scripts_of(source).walk_revisions())[::-1]
    except (CommandError, RevisionError) as error:
        raise PluginError(
            f"the migrations of {source.owner} are not one sequence: {error}"
        ) from error
    steps = list[Step]()
    for script in scripts:
        phase = getattr(script.module, "phase", None)
        if phase not in ("expand", "contract"):
            raise PluginError(
                f'{script.path} has no phase: set phase = "expand" if processes of the earlier release can'
                ' live with it, else "contract"'
            )
        transactional = getattr(script.module, "transactional", True)
        steps.append(
            Step(source.owner, script.revision, cast("Phase", phase), transactional=transactional)
        )
    return tuple(steps)
