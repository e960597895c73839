"""Set-up of a server or worker process."""

import gc

#: Threshold of new objects for a collection of the youngest generation; Python's default is 700.
YOUNG_OBJECTS = 10_000


def collect_less_often() -> None:
    """Raises the garbage collector's threshold. Reference counting frees the objects of a request;
    collections took a sixth of the time of `POST /v1/send` and found no cycles."""
    gc.set_threshold(YOUNG_OBJECTS)
