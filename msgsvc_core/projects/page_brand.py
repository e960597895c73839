"""The branding of the page that a request asks for, also of its error pages."""

from starlette.requests import Request

from msgsvc_core.projects.branding import PageBrand
from msgsvc_core.projects.models import Project


def set_page_brand(request: Request, project: Project) -> None:
    """From now on every page that answers the request looks as the project wants it."""
    request.state.brand = project.brand(request.scope.get("root_path", ""))


def page_brand(request: Request) -> PageBrand | None:
    """`brand` of templates that extend `frame.html`; None while the project is not known."""
    return getattr(request.state, "brand", None)
