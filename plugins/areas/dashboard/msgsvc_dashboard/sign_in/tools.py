"""Shared parts of the pages of signing in."""

from dataclasses import dataclass

from msgsvc_dashboard.frame.gate import Gate
from msgsvc_dashboard.sign_in.cookies import Cookies
from msgsvc_dashboard.sign_in.entering import Entering
from msgsvc_dashboard.sign_in.forms import Forms
from msgsvc_dashboard.sign_in.rendering import Rendering


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTools:
    """The objects that every page of signing in needs."""

    gate: Gate
    cookies: Cookies
    forms: Forms
    rendering: Rendering
    entering: Entering
