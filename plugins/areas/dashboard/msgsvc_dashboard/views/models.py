"""A saved view of a list."""

from msgsvc_core.kernel.values import value_object


@value_object
class SavedView:
    """Filters of the list at `path`, as in its address. `is_default` is the reader's."""

    view_id: str
    path: str
    query: str
    name: str
    account_id: str
    is_shared: bool
    is_default: bool = False
