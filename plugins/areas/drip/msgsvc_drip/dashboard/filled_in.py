"""Converts between the form of a step and the step."""

import json
import math
from collections.abc import Mapping
from typing import Any

from msgsvc_core.dashboard import PostedForm
from msgsvc_core.dashboard.writing import MessageForm
from msgsvc_drip.definition import Step

_UNITS = ("minutes", "hours", "days")


def step_of(form: PostedForm, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The step of a form, unvalidated. Fields that the form does not have keep their value from `before`."""
    unit = form.text("unit", "days")
    message = MessageForm(form).message()
    old = (before or {}).get("message", {})
    message |= {name: value for name, value in old.items() if name not in MessageForm.FIELDS}
    step: dict[str, Any] = {
        "delay": {unit if unit in _UNITS else "days": form.number("delay")},
        "message": message,
    }
    if at := form.text("at_local_time").strip():
        step["at_local_time"] = at
    if route := form.text("route_id"):
        step["route_id"] = route
    if when := _when(form, (before or {}).get("when") or {}):
        step["when"] = when
    return step


def form_of_step(step: Step) -> PostedForm:
    """Form values for a step."""
    given = step.model_dump(mode="json", exclude_unset=True)
    [(unit, number)] = step.delay.model_dump(exclude_none=True).items()
    when = given.get("when") or {}
    attribute = when.get("attribute") or {}
    values = {
        "delay": str(number),
        "unit": unit,
        "at_local_time": step.at_local_time or "",
        "route_id": step.route_id or "",
        "when_tags_any": ", ".join(when.get("tags_any") or []),
        "when_tags_none": ", ".join(when.get("tags_none") or []),
        "when_permission": when.get("permission") or "",
        "when_lang": when.get("lang") or "",
        "when_channel": when.get("channel") or "",
        "when_attribute": attribute.get("name") or "",
        "when_equals": _shown(attribute.get("equals", "")),
    }
    return PostedForm(
        {
            **MessageForm.values_of(given["message"]),
            **{name: [text] for name, text in values.items()},
        }
    )


def _when(form: PostedForm, before: Mapping[str, Any]) -> dict[str, Any]:
    when: dict[str, Any] = {}
    for name in ("tags_any", "tags_none"):
        tags = [tag.strip() for tag in form.text(f"when_{name}").split(",") if tag.strip()]
        if tags:
            when[name] = tags
    for name in ("permission", "lang", "channel"):
        if chosen := form.text(f"when_{name}"):
            when[name] = chosen
    if name := form.text("when_attribute").strip():
        when["attribute"] = {"name": name, "equals": _value(form.text("when_equals"))}
        old = before.get("attribute") or {}
        if old.get("name") == name and _shown(old.get("equals")) == form.text("when_equals"):
            when["attribute"] = dict(old)
    return when


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _value(text: str) -> object:
    """A number, true or false where it reads so; else the text itself."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    # NaN and numbers too large for one are read as such, and are none in JSON.
    is_plain = isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else text
