"""Ways in which the fake can be told to fail."""

from dataclasses import dataclass, field
from random import Random

from msgsvc_telegram.testing.calls import Break, Refusal, too_many_requests


@dataclass(slots=True)
class Faults:
    """Shares of calls that fail, from 0 to 1, of those methods whose names begin with `methods`.

    `resets` breaks connections before anything happened, `lost_answers` after it did.
    """

    too_many: float = 0.0
    server_errors: float = 0.0
    resets: float = 0.0
    lost_answers: float = 0.0
    #: What a 429 asks for, in whole seconds.
    retry_after: int = 1
    methods: tuple[str, ...] = ("send", "edit")
    random: Random = field(default_factory=lambda: Random(4))  # noqa: S311 - no secret

    def before(self, method: str) -> None:
        """Raises what happens to a call instead of its effect."""
        if not method.startswith(self.methods):
            return
        point = self.random.random()
        if point < self.too_many:
            raise too_many_requests(self.retry_after)
        if point < self.too_many + self.server_errors:
            raise Refusal(500, "Internal Server Error: restart")
        if point < self.too_many + self.server_errors + self.resets:
            raise Break

    def after(self, method: str) -> None:
        """Raises `Break` where the effect happened and the answer is lost."""
        if method.startswith(self.methods) and self.random.random() < self.lost_answers:
            raise Break


@dataclass(slots=True)
class Script:
    """What the next calls are answered with, whatever they ask."""

    method: str
    status: int
    body: bytes
    times: int
    content_type: str = "application/json"
