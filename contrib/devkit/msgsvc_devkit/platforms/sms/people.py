"""People with telephones."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Text:
    """A message as its reader sees it, joined from its parts. `ref` is the id of the last one."""

    ref: str
    sender: str
    text: str
    parts: int = 1


@dataclass(slots=True)
class Person:
    """Somebody with a telephone. `number` is `+` and digits.

    `opted_out` if the carrier keeps messages of the service from them, `gone` if the number is out of
    use. `is_off` keeps messages at the centre: there is no receipt.
    """

    name: str
    number: str
    messages: list[Text] = field(default_factory=list)
    opted_out: bool = False
    gone: bool = False
    is_off: bool = False
    #: Parts of messages of which others are missing: by sender and reference.
    waiting: dict[tuple[str, int, int], dict[int, str]] = field(default_factory=dict)

    def receive(self, ref: str, sender: str, text: str, part: tuple[int, int, int] | None) -> None:
        """A short message arrives; `part` is reference, total and number."""
        if part is None:
            self.messages.append(Text(ref, sender, text))
            return
        reference, total, number = part
        found = self.waiting.setdefault((sender, reference, total), {})
        found[number] = text
        if len(found) == total:
            del self.waiting[sender, reference, total]
            whole = "".join(found[each] for each in sorted(found))
            self.messages.append(Text(ref, sender, whole, total))
