"""Somebody who has a keyboard and no pointer: goes where Tab leads, and sees at every stop where they are."""

from dataclasses import dataclass

from playwright.async_api import Locator, Page, expect

#: Stops of Tab on a page of ours, at most: whoever has not arrived by then goes in circles.
MOST_STOPS = 250

NOWHERE = "nothing has the focus"

#: Whether an element has the focus, and what is wrong with where it is: an empty text if it is seen there.
WHERE = """(target) => {
  const wrong = (() => {
    const it = document.activeElement;
    if (!it || it === document.body || it === document.documentElement) return "nothing has the focus";
    // A part of a field that the browser made, e.g. the button of a calendar, which has a ring of its own.
    if (!it.matches(":focus")) return "";
    const name = it.outerHTML.slice(0, 160);
    const ringed = (one) => {
      const style = getComputedStyle(one);
      const clear = /^(transparent|rgba\\(.*, 0\\))$/.test(style.outlineColor);
      return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && !clear;
    };
    // Some are drawn by what stands for them: the text of a choice, the field of a filter.
    const drawn = [it, it.nextElementSibling, it.closest("label"), it.closest(".field"), it.closest(".tile")];
    const ring = drawn.find((one) => one && ringed(one));
    if (!ring) return `nothing shows the focus: ${name}`;
    const box = ring.getBoundingClientRect();
    const [left, right] = [Math.max(box.left, 0), Math.min(box.right, innerWidth)];
    const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)];
    if (right - left < 1 || bottom - top < 1) return `the focus is out of sight: ${name}`;
    const found = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    const open = found && (ring.contains(found) || found.contains(ring) || it.contains(found));
    return open ? "" : `the focus is beneath ${found && found.outerHTML.slice(0, 80)}: ${name}`;
  })();
  return { wrong, there: document.activeElement === target };
}"""


@dataclass(frozen=True, slots=True)
class Keyboard:
    """The keys of somebody's keyboard, on one page."""

    page: Page

    async def check(self) -> None:
        """The focus is somewhere, and seen."""
        found = await self.page.evaluate(WHERE, None)
        assert not found["wrong"], found["wrong"]

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.page.keyboard.press(key)

    async def type(self, text: str) -> None:
        await self.page.keyboard.type(text)

    async def to(self, target: Locator, *, back: bool = False) -> None:
        """Goes on by Tab, or back by Shift+Tab, until it is there; whatever it passes shows the focus."""
        for _ in range(MOST_STOPS):
            await self.page.keyboard.press("Shift+Tab" if back else "Tab")
            found = await target.evaluate(WHERE)
            # After the last one comes the browser itself, and then the first.
            assert found["wrong"] in {"", NOWHERE}, found["wrong"]
            if found["there"]:
                return
        raise AssertionError(f"Tab does not lead to {target} in {MOST_STOPS} stops")

    async def enter(self, target: Locator, *, back: bool = False) -> None:
        """Goes to a button, and presses Enter; the page stays."""
        await self.to(target, back=back)
        await self.press("Enter")

    async def follow(self, target: Locator, *, back: bool = False) -> None:
        """Goes to a link or a button that leads to another page, and presses Enter."""
        await self.to(target, back=back)
        async with self.page.expect_navigation():
            await self.press("Enter")

    async def choose(self, name: str) -> None:
        """Chooses one of several, which the arrow keys go through."""
        wanted = self.page.get_by_role("radio", name=name)
        group = await wanted.get_attribute("name")
        chosen = self.page.locator(f"input[type=radio][name={group}]:checked")
        await self.to(chosen)
        for _ in range(await self.page.locator(f"input[type=radio][name={group}]").count()):
            if await wanted.is_checked():
                break
            await self.press("ArrowDown")
        await expect(wanted).to_be_checked()
        await self.check()
