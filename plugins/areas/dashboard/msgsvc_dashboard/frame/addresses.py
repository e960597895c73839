"""URLs of pages."""

from starlette.requests import HTTPConnection

from msgsvc_core.dashboard import Page

ROOT = "/dashboard"


def path_of(page: Page) -> str:
    """The path of a page, with its parameters as `{name}`."""
    return beside(page, page.path)


def beside(page: Page, path: str) -> str:
    """The path of another page that is declared beside that one."""
    if page.access == "installation:operate":
        return f"{ROOT}/operator{path}"
    if page.access == "account:self":
        return f"{ROOT}/account{path}"
    return f"{ROOT}/projects/{{project_id}}{path}"


def root_of(request: HTTPConnection) -> str:
    """The root of the dashboard, also if mounted below another application."""
    return f"{request.scope.get('root_path', '')}{ROOT}"


def asked_for(request: HTTPConnection) -> str:
    """The requested URL, from the path on."""
    query = f"?{request.url.query}" if request.url.query else ""
    return f"{request.url.path}{query}"


def is_ours(request: HTTPConnection, address: str) -> bool:
    """Whether a URL leads to a page of the dashboard, and to no other host."""
    root = root_of(request)
    inside = address == root or address.startswith((f"{root}/", f"{root}?"))
    return inside and address.isprintable() and "\\" not in address
