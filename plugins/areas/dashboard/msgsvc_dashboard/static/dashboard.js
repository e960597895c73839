"use strict";

// Every request of htmx shows that it comes from a page of ours.
document.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers["X-CSRF-Token"] = document.querySelector('meta[name="csrf"]').content;
});

// Where the reader is may be out of sight in a long side bar, or in tabs that are wider than a phone.
for (const here of document.querySelectorAll(".side [aria-current], .tabs [aria-current]")) {
  const box = here.closest(".side, .tabs");
  const [inside, part] = [box.getBoundingClientRect(), here.getBoundingClientRect()];
  if (part.bottom > inside.bottom - 32) box.scrollTop += part.bottom - inside.bottom + 48;
  if (part.right > inside.right - 16) box.scrollLeft += part.right - inside.right + 32;
}

// A refusal stays until the next request of the reader that succeeds. What a part that asks every few seconds was
// refused goes when it succeeds again, and takes nothing else along.
let isOfPoll = false;
const isPoll = (event) => !event.detail.requestConfig.triggeringEvent;
for (const name of ["htmx:responseError", "htmx:sendError"]) {
  document.addEventListener(name, (event) => { isOfPoll = isPoll(event); });
}
document.addEventListener("htmx:afterRequest", (event) => {
  const problem = document.getElementById("problem");
  if (event.detail.successful && problem && (isOfPoll || !isPoll(event))) problem.replaceChildren();
});

// A part that is replaced under somebody's focus gives it to what stands in its place: the same link or button, else
// the part itself. Without that the next Tab would begin at the top of the page. What has an id htmx finds itself.
let held = null;
document.addEventListener("htmx:beforeSwap", (event) => {
  const focused = document.activeElement;
  if (focused && focused !== document.body) held = { focused, target: event.detail.target };
});
function standIn({ focused, target }) {
  let root = focused;
  while (root.parentNode instanceof Element) root = root.parentNode;
  const part = document.getElementById(root.id || target.id) || (target.isConnected && target);
  if (!part) return null;
  const kind = `${focused.tagName.toLowerCase()}:not([hidden], [type="hidden"])`;
  const marks = ["href", "name", "value", "popovertarget"];
  const isLike = (one) => marks.every((mark) => one.getAttribute(mark) === focused.getAttribute(mark));
  const all = [...part.querySelectorAll(kind)].filter((one) => one.tabIndex >= 0);
  const found = all.find((one) => isLike(one) && one.textContent === focused.textContent) || all.find(isLike);
  if (!found && part.tabIndex < 0) part.tabIndex = -1;
  return found || part;
}
document.addEventListener("htmx:afterSettle", () => {
  if (!held || held.focused.isConnected || document.activeElement !== document.body) return;
  standIn(held)?.focus({ preventScroll: true });
  held = null;
});

// No answer at all: the network is away, or the service restarts.
document.addEventListener("htmx:sendError", () => {
  const problem = document.getElementById("problem");
  const text = document.querySelector('meta[name="away"]').content;
  if (!problem || problem.textContent === text) return;
  const notice = document.createElement("p");
  notice.className = "notice danger";
  notice.textContent = text;
  problem.replaceChildren(notice);
});

// Dialogs open without us, as popovers; with us they keep the focus inside, and close at a click beside them.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[popovertarget]");
  const dialog = button && document.getElementById(button.getAttribute("popovertarget"));
  if (!dialog || !dialog.matches("dialog")) return;
  event.preventDefault();
  if (button.popoverTargetAction === "hide") dialog.close();
  else if (!dialog.open) dialog.showModal();
});

// What opens in its place closes with Escape, and gives the focus back.
document.addEventListener("keydown", (event) => {
  const open = event.key === "Escape" && event.target.closest && event.target.closest("details.confirm[open]");
  if (!open) return;
  open.open = false;
  open.querySelector("summary").focus();
});

// What was done is said again, as screen readers are silent of what a page comes with; and it goes by itself,
// but not from under somebody's pointer or focus.
const TOAST_MS = 10000;
function leave(toast) {
  if (toast.matches(":hover, :focus-within")) setTimeout(leave, TOAST_MS, toast);
  else toast.remove();
}
for (const toast of document.querySelectorAll("[data-toast]")) {
  const said = toast.querySelector("[role=status]");
  const text = said.textContent;
  said.textContent = "";
  requestAnimationFrame(() => { said.textContent = text; });
  toast.querySelector("a").addEventListener("click", (event) => {
    event.preventDefault();
    toast.remove();
  });
  setTimeout(leave, TOAST_MS, toast);
}

// A form that was sent is not sent twice, and its button says that it works.
function ready(form) {
  delete form.dataset.sent;
  for (const button of form.querySelectorAll("[aria-busy]")) button.ariaBusy = null;
}
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "1";
  if (event.submitter) event.submitter.ariaBusy = "true";
  setTimeout(ready, 5000, form);
});
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) ready(form);
});

// A text that is needed elsewhere is copied by the button beside it, where the browser lets pages do so.
function offerCopies() {
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("button[data-copy]")) button.hidden = false;
}
offerCopies();
document.addEventListener("htmx:afterSwap", offerCopies);
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button || button.dataset.label) return;
  try {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
  } catch {
    return;
  }
  const label = button.lastElementChild;
  button.dataset.label = label.textContent;
  label.textContent = button.dataset.copy;
  setTimeout(() => {
    label.textContent = button.dataset.label;
    delete button.dataset.label;
  }, 2000);
});

// The arrow keys go through the days of a chart, and each is read out.
document.addEventListener("keydown", (event) => {
  const plot = event.target.closest && event.target.closest("[data-plot]");
  const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
  if (!plot || by === undefined) return;
  event.preventDefault();
  const days = [...plot.querySelectorAll(".days > div")];
  const now = days.findIndex((day) => day.classList.contains("on"));
  const next = Math.min(days.length - 1, Math.max(0, (now < 0 ? days.length : now) + by));
  for (const [number, day] of days.entries()) day.classList.toggle("on", number === next);
  const parts = [...days[next].querySelector(".tip").children].map((part) => part.textContent.trim());
  plot.querySelector('[role="status"]').textContent = parts.join(", ");
});
document.addEventListener("focusout", (event) => {
  for (const day of event.target.querySelectorAll?.(".days > .on") ?? []) day.classList.remove("on");
});

// Who has no time zone yet, e.g. since they came by a link, has that of the browser from the first page on.
const zone = document.querySelector('meta[name="timezone"]');
async function tellTimezone() {
  const mine = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!mine) return;
  const headers = { "X-CSRF-Token": document.querySelector('meta[name="csrf"]').content };
  const body = new URLSearchParams({ timezone: mine });
  const response = await fetch(zone.dataset.url, { method: "POST", headers, body });
  // Whoever writes already keeps the page; the next one is by their clock.
  if (response.ok && mine !== zone.content && document.activeElement === document.body) location.reload();
}
// What could not be told now is told by the next page.
if (zone) tellTimezone().catch(() => {});

// The box above the boxes of a list checks those of the page; as soon as one is checked, what can be done with
// them opens. Without us it is opened by hand, and "all on this page" is one of its choices.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-bulk]");
  if (!form || event.target.type !== "checkbox") return;
  const boxes = [...form.querySelectorAll("input[name=id]")];
  if (event.target.matches("[data-all]")) for (const box of boxes) box.checked = event.target.checked;
  const count = boxes.filter((box) => box.checked).length;
  const all = form.querySelector("[data-all]");
  all.checked = count === boxes.length;
  all.indeterminate = count > 0 && !all.checked;
  if (count) {
    form.querySelector("details").open = true;
    form.querySelector("[name=who]").value = "chosen";
  }
});

// Without us it could do nothing.
function showAll() {
  for (const box of document.querySelectorAll("[data-all][hidden]")) box.hidden = false;
}
showAll();
document.addEventListener("htmx:afterSwap", showAll);
