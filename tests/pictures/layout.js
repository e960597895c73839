// Functions that measure the page in which they run. Each returns what is wrong with it, in words.

const html = (one) => one.outerHTML.replace(/\s+/g, " ").slice(0, 120);

const styles = new Map();
function style(one) {
  if (!styles.has(one)) styles.set(one, getComputedStyle(one));
  return styles.get(one);
}

function* ancestors(one) {
  for (; one && one !== document.body; one = one.parentElement) yield one;
}

// Texts for screen readers alone are clipped to a point.
function isSeen(one) {
  if (!one.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return false;
  return ![...ancestors(one)].some((at) => at.clientWidth === 1 || style(at).clipPath === "inset(50%)");
}

function* textsOf(root) {
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) if (node.data.trim()) yield node;
}

// Elements beyond the edge of a page that scrolls sideways.
function sideways() {
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth) return [];
  const beyond = [...document.body.querySelectorAll("*")].filter(
    (one) => one.getBoundingClientRect().right > root.clientWidth + 1,
  );
  return [`it scrolls sideways: ${beyond.slice(0, 3).map(html).join(" and ")}`];
}

// The first box around a text that the text leaves, of its own block and those that are drawn or clip.
function leftBox(node) {
  const range = document.createRange();
  range.selectNodeContents(node);
  const text = range.getBoundingClientRect();
  // Not laid out, e.g. what a progress bar says to browsers without one.
  if (!text.width || node.parentElement.closest("progress, meter")) return null;
  let isOwnBlock = true;
  for (const one of ancestors(node.parentElement)) {
    const at = style(one);
    if (at.display === "inline" || at.display === "contents") continue;
    // Meant to be so: a box that scrolls, and a text that ends in an ellipsis.
    if (/auto|scroll/.test(at.overflow) || at.textOverflow === "ellipsis") return null;
    if (at.webkitLineClamp !== "none") return null;
    const isDrawn = at.borderTopWidth !== "0px" || !/, 0\)$/.test(at.backgroundColor);
    const box = one.getBoundingClientRect();
    const isBeside = text.left < box.left - 1 || text.right > box.right + 1;
    // A line may be lower than its letters.
    const isOver = text.top < box.top - 4 || text.bottom > box.bottom + 4;
    if ((isOwnBlock || isDrawn || at.overflow !== "visible") && (isBeside || isOver)) return one;
    if (at.position === "fixed" || at.position === "absolute") return null;
    isOwnBlock = false;
  }
  return null;
}

function overflowing() {
  const found = [];
  for (const node of textsOf(document.body)) {
    const box = isSeen(node.parentElement) ? leftBox(node) : null;
    if (box) {
      const verb = style(box).overflow === "visible" ? "leaves" : "is cut off by";
      found.push(`"${node.data.trim().slice(0, 40)}" ${verb} ${html(box)}`);
    }
  }
  return found;
}

function doOverlap(a, b) {
  const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  return width > 2 && height > 2;
}

// Controls over one another, but for those that stick to the window: others scroll under them.
function overlapping() {
  const names = "a[href], button, input:not([type=hidden]), select, textarea, summary";
  const controls = [...document.querySelectorAll(names)].filter(isSeen).map((one) => ({
    one,
    boxes: [...one.getClientRects()],
    holder: [...ancestors(one)].find((at) => /fixed|sticky/.test(style(at).position)),
  }));
  return controls.flatMap((a, index) =>
    controls
      .slice(index + 1)
      .filter((b) => a.holder === b.holder && !a.one.contains(b.one))
      .filter((b) => a.boxes.some((box) => b.boxes.some((other) => doOverlap(box, other))))
      .map((b) => `${html(a.one)} overlaps ${html(b.one)}`),
  );
}

function layout() {
  return [...sideways(), ...overflowing(), ...overlapping()];
}

// Whether a finger can hit it where it is once it was scrolled to.
function isHit(one) {
  one.scrollIntoView({ block: "nearest" });
  const box = one.getBoundingClientRect();
  const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  return box.width >= 24 && box.height >= 24 && one.contains(hit);
}

// On a phone: the button that opens the dashboard's navigation, and all that is in it.
function navigation() {
  const pages = document.getElementById("pages");
  if (!pages) return [];
  const opener = document.querySelector("[popovertarget=pages]");
  const missed = isHit(opener) ? [] : [opener];
  pages.showPopover();
  missed.push(...[...pages.querySelectorAll("a, button")].filter((one) => isSeen(one) && !isHit(one)));
  pages.hidePopover();
  return missed.map((one) => `out of a finger's reach: ${html(one)}`);
}

// Texts without a Cyrillic letter, seen or not, but for code and what is in another language.
function latin() {
  const found = document.documentElement.lang === "ru" ? [] : ["The page is not in Russian"];
  const others = "script, style, code, pre, kbd, textarea, body [lang]:not([lang=ru])";
  for (const node of textsOf(document)) if (!node.parentElement.closest(others)) found.push(node.data.trim());
  for (const name of ["placeholder", "aria-label", "title", "alt"]) {
    found.push(...[...document.querySelectorAll(`[${name}]`)].map((one) => one.getAttribute(name)));
  }
  return [...new Set(found)].filter((text) => /[a-z]{2}/i.test(text) && !/[а-яё]/i.test(text));
}
