"""Building blocks of dashboard pages: plugins declare pages, the dashboard plugin renders them."""

from msgsvc_core.dashboard.access import ALLOWED, Access, Viewer, may
from msgsvc_core.dashboard.answers import Download, Redirect, Render
from msgsvc_core.dashboard.context import PageContext
from msgsvc_core.dashboard.declared import Card, Nav, Page, Pages
from msgsvc_core.dashboard.lists import ListWalk
from msgsvc_core.dashboard.overview_parts import (
    EventChart,
    EventSeries,
    EventTile,
    Figure,
    FirstStep,
    Problem,
)
from msgsvc_core.dashboard.posted import PostedFile, PostedForm
from msgsvc_core.dashboard.searching import Hit

__all__ = [
    "ALLOWED",
    "Access",
    "Card",
    "Download",
    "EventChart",
    "EventSeries",
    "EventTile",
    "Figure",
    "FirstStep",
    "Hit",
    "ListWalk",
    "Nav",
    "Page",
    "PageContext",
    "Pages",
    "PostedFile",
    "PostedForm",
    "Problem",
    "Redirect",
    "Render",
    "Viewer",
    "may",
]
