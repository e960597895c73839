"""Names of channels' job lanes."""

#: Prefix of the names of channels' lanes.
LANE = "channel"


def lane_of(channel_key: str) -> str:
    """The lane of all outgoing calls of a channel."""
    return f"{LANE}:{channel_key}"


def channel_of(lane: str) -> str:
    """The key of a lane's channel."""
    return lane.partition(":")[2]
