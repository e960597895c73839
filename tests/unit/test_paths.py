"""The tree of paths."""

import pytest

from msgsvc_core.http.paths import Paths


@pytest.fixture
def paths() -> Paths[str]:
    made = Paths[str]()
    for path in (
        "/v1/send",
        "/v1/things",
        "/v1/things/{id}",
        "/v1/things/{id}/parts/{part}",
        "/v1/things/new/labels",
    ):
        made.add(path, path)
    return made


@pytest.mark.parametrize(
    ("path", "found", "values"),
    [
        ("/v1/send", "/v1/send", {}),
        ("/v1/things", "/v1/things", {}),
        ("/v1/things/a b%é", "/v1/things/{id}", {"id": "a b%é"}),
        ("/v1/things/new", "/v1/things/{id}", {"id": "new"}),
        ("/v1/things/1/parts/2", "/v1/things/{id}/parts/{part}", {"id": "1", "part": "2"}),
        # The literal `new` leads no further here, so the parameter is tried.
        ("/v1/things/new/parts/2", "/v1/things/{id}/parts/{part}", {"id": "new", "part": "2"}),
        ("/v1/things/new/labels", "/v1/things/new/labels", {}),
    ],
)
def test_a_path_is_found_with_its_parameters(
    paths: Paths[str], path: str, found: str, values: dict[str, str]
) -> None:
    assert paths.match(path) == (found, values)


@pytest.mark.parametrize(
    "path",
    ["", "/", "/v1", "/v1/", "/v1/send/", "/v1/things/", "/v1/things/1/", "/v1/things//parts/2"],
)
def test_what_is_nowhere_is_not_found(paths: Paths[str], path: str) -> None:
    assert paths.match(path) is None
