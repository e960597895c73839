"use strict";

// The page says that it is open, and that somebody types: colleagues see it, and the ticket counts as read.
const desk = document.querySelector(".desk");
const BEAT_MS = 10000;
const TYPING_MS = 3000;
let typedAt = -TYPING_MS;
async function beat(typing) {
  if (document.hidden) return;
  const headers = { "X-CSRF-Token": document.querySelector('meta[name="csrf"]').content };
  const body = new URLSearchParams({ typing: typing ? "1" : "" });
  // What is lost is told by the next one.
  await fetch(desk.dataset.present, { method: "POST", headers, body }).catch(() => {});
}
if (desk?.dataset.present) {
  beat(false);
  setInterval(() => beat(false), BEAT_MS);
  document.addEventListener("visibilitychange", () => beat(false));
  for (const box of document.querySelectorAll("textarea[data-draft]")) {
    box.addEventListener("input", (event) => {
      if (!event.isTrusted || performance.now() - typedAt < TYPING_MS) return;
      typedAt = performance.now();
      beat(true);
    });
  }
}

// The list of keys; its button works whether the keys do or not.
const keys = document.querySelector("#keys");
const showKeys = document.querySelector("#show-keys");
if (showKeys) {
  showKeys.hidden = false;
  showKeys.addEventListener("click", () => keys.showModal());
}

// Single keys, unless somebody writes, or has switched them off.
const CODES = { KeyJ: "j", KeyK: "k", KeyE: "e", KeyA: "a", KeyS: "s", KeyR: "r", KeyN: "n" };
function keyOf(event) {
  if (event.key === "?") return "?";
  if (event.shiftKey) return "";
  // On a keyboard of other letters the key at the same place.
  return /^[a-z]$/.test(event.key) ? event.key : CODES[event.code] || "";
}
function isBusy(event) {
  if (event.defaultPrevented || event.isComposing || event.repeat) return true;
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  if (document.querySelector("dialog[open], [popover]:popover-open")) return true;
  return event.target.closest("input, textarea, select, [contenteditable]") !== null;
}
const links = () => [...document.querySelectorAll(".ticket-list a.ticket")];
function step(by) {
  const all = links();
  const isTicket = desk.classList.contains("is-ticket");
  const now = all.findIndex((link) => (isTicket ? link.hasAttribute("aria-current") : link === document.activeElement));
  const next = all[now < 0 ? (by > 0 ? 0 : all.length - 1) : now + by];
  if (!next) return;
  if (isTicket) location.assign(next.href);
  else next.focus();
}
function submitFor(link, action, values) {
  const form = document.createElement("form");
  const url = new URL(link.href);
  form.method = "post";
  form.action = `${url.pathname}/${action}${url.search}`;
  form.hidden = true;
  const csrf = document.querySelector('meta[name="csrf"]').content;
  for (const [name, value] of Object.entries({ _csrf: csrf, to: "list", ...values })) {
    const field = document.createElement("input");
    field.name = name;
    field.value = value;
    form.append(field);
  }
  document.body.append(form);
  form.requestSubmit();
}
// What a key does to the ticket that is in focus in the list.
function actOn(link, key) {
  if (key === "a") submitFor(link, "assign", { assignee_id: "me" });
  else if (key === "e") submitFor(link, "status", { status: "closed" });
  else location.assign(`${link.href}#key-${key}`);
}
// What it does to the ticket of the page: it presses what is there.
function press(key) {
  const part = document.querySelector(`.is-ticket [data-key="${key}"]`);
  if (!part) return;
  if (part.tagName === "SUMMARY") {
    part.parentElement.open = true;
    part.parentElement.querySelector("button").focus();
    part.scrollIntoView({ block: "nearest" });
  } else if (part.type === "radio") {
    part.checked = true;
    part.dispatchEvent(new Event("change", { bubbles: true }));
  } else {
    part.form.requestSubmit(part);
  }
}
if (desk && "shortcuts" in desk.dataset) {
  document.addEventListener("keydown", (event) => {
    if (isBusy(event)) return;
    const key = keyOf(event);
    const link = event.target.closest("a.ticket");
    const known = { "?": () => keys.showModal(), j: () => step(1), k: () => step(-1) };
    let run = known[key];
    if (!run && /^[easrn]$/.test(key)) {
      if (desk.classList.contains("is-ticket")) run = () => press(key);
      else if (link && desk.dataset.shortcuts === "write") run = () => actOn(link, key);
    }
    if (!run) return;
    event.preventDefault();
    run();
  });
}
// A key of the list that goes on in the ticket.
const wanted = /^#key-([srn])$/.exec(location.hash);
if (wanted) {
  history.replaceState(null, "", location.pathname + location.search);
  press(wanted[1]);
}
