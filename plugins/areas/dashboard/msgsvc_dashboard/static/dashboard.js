"use strict";

// Every request of htmx shows that it comes from a page of ours.
document.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers["X-CSRF-Token"] = document.querySelector('meta[name="csrf"]').content;
});

// A refusal stays until the next request that succeeds; pages that ask every few seconds say it once.
document.addEventListener("htmx:afterRequest", (event) => {
  const problem = document.getElementById("problem");
  if (event.detail.successful && problem) problem.replaceChildren();
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

// What asks before it does closes with Escape, and gives the focus back.
document.addEventListener("keydown", (event) => {
  const open = event.key === "Escape" && event.target.closest && event.target.closest("details.confirm[open]");
  if (!open) return;
  open.open = false;
  open.querySelector("summary").focus();
});

// A form that was sent is not sent twice.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "1";
  setTimeout(() => delete form.dataset.sent, 5000);
});
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
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
