"""Whether the platform takes messages of a number (Cloud API: "Messaging Health Status")."""

from collections.abc import Iterator, Mapping
from typing import Any

#: The account's payment method has an error: the business may only answer people.
PAYMENT = 141006


def trouble_of(number: Mapping[str, Any]) -> str | None:
    """Why messages are refused, in the platform's words; None if they are taken, or it does not say."""
    for entity in _objects(number.get("health_status"), "entities"):
        errors = list(_objects(entity, "errors"))
        blocks = entity.get("can_send_message") == "BLOCKED"
        if blocks or any(error.get("error_code") == PAYMENT for error in errors):
            words = [
                text
                for error in errors
                for text in (error.get("error_description"), error.get("possible_solution"))
                if isinstance(text, str) and text
            ]
            return " ".join(words) or f"messages are blocked ({entity.get('entity_type')})"
    return None


def _objects(holder: Any, name: str) -> Iterator[Mapping[str, Any]]:
    found = holder.get(name) if isinstance(holder, dict) else None
    return (one for one in found if isinstance(one, dict)) if isinstance(found, list) else iter(())
