"""Default plugins and channels, which installed distributions declare by entry points.

Only names and values are read, nothing is imported, so that a broken plugin can't prevent settings from
loading. The distributions are scanned once per process.
"""

import re
from functools import cache

from msgsvc_core.kernel.entry_points import installed

#: Plugins that are loaded unless the setting `plugins` is given: `020-NAME = "package.plugin"`. Hooks are
#: called in the order of these names, like files of a `conf.d` folder.
PLUGINS_GROUP = "msgsvc.default_plugins"

#: Channels that exist unless `[channels]` is given: the name in the API, and the kind of messenger.
CHANNELS_GROUP = "msgsvc.default_channels"

_PLACE = re.compile(r"^\d+-")


@cache
def default_plugins() -> tuple[str, ...]:
    """Names of the default plugins, in order."""
    names = sorted(point.name for point in installed(PLUGINS_GROUP))
    return tuple(dict.fromkeys(_PLACE.sub("", name) for name in names))


@cache
def default_channels() -> dict[str, str]:
    """Kinds of messengers by the channel's name."""
    points = sorted(installed(CHANNELS_GROUP), key=lambda point: point.name)
    return {point.name: point.value for point in points}
