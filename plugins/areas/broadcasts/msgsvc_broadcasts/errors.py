"""Error codes of broadcasts."""

from msgsvc_core.kernel.errors import ApiError


class WinnerAlreadyChosen(ApiError):
    """The winner of the broadcast's variants has been chosen; it goes to the rest of the audience."""

    code, status = "winner_already_chosen", 409


BROADCAST_ERRORS: tuple[type[ApiError], ...] = (WinnerAlreadyChosen,)
