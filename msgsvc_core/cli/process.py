"""What a process of ours sets up for itself before it serves or works."""

import gc

#: New objects after which Python looks for cycles among the youngest; its default is 700.
YOUNG_OBJECTS = 10_000


def collect_less_often() -> None:
    """A request's objects die by themselves: looking for cycles among them every few requests took a
    sixth of the time of `POST /v1/send`, and found none."""
    gc.set_threshold(YOUNG_OBJECTS)
