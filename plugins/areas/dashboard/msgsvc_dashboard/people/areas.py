"""The areas of this folder; the modules of their pages are imported here, so that each registers its own."""

from msgsvc_core.dashboard import Pages
from msgsvc_dashboard.people import (
    bulk_actions,
    composing,
    editing,
    imports,
    inviting,
    merging,
    messages,
    permissions,
    routing,
    searching,
    subscriber_changes,
    subscribers,
    tags,
    template_editing,
    template_list,
)
from msgsvc_dashboard.people.declared import (
    message_pages,
    permission_pages,
    route_pages,
    subscriber_pages,
    tag_pages,
    template_pages,
)

#: Modules that declare pages of the areas.
DECLARING = (
    bulk_actions,
    composing,
    editing,
    imports,
    inviting,
    merging,
    messages,
    permissions,
    routing,
    searching,
    subscriber_changes,
    subscribers,
    tags,
    template_editing,
    template_list,
)

areas: list[Pages] = [
    subscriber_pages,
    message_pages,
    tag_pages,
    permission_pages,
    template_pages,
    route_pages,
]
