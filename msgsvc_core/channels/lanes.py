"""Names of the lanes in which everything waits that goes out on a channel."""

#: What the name of a channel's lane begins with.
LANE = "channel"


def lane_of(channel_key: str) -> str:
    """The lane of everything that goes out on a channel."""
    return f"{LANE}:{channel_key}"


def channel_of(lane: str) -> str:
    """The key of the channel that a lane is of."""
    return lane.partition(":")[2]
