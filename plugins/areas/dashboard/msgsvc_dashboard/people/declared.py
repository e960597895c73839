"""The areas of the pages in this folder. They share its templates and its stylesheet."""

from msgsvc_core.dashboard import Pages

PACKAGE = "msgsvc_dashboard.people"
STYLES = ("people.css",)

subscriber_pages = Pages("subscribers", package=PACKAGE, styles=STYLES)
message_pages = Pages("messages", package=PACKAGE, styles=STYLES)
tag_pages = Pages("tags", package=PACKAGE, styles=STYLES)
permission_pages = Pages("permissions", package=PACKAGE, styles=STYLES)
template_pages = Pages("templates", package=PACKAGE, styles=STYLES)
route_pages = Pages("routes", package=PACKAGE, styles=STYLES)
