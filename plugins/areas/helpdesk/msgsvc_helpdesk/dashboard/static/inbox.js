"use strict";

// What somebody writes stays while they do something else with the ticket, e.g. give it to a colleague.
const drafts = document.querySelectorAll("textarea[data-draft]");
for (const box of drafts) {
  const key = `msgsvc draft ${box.dataset.draft}`;
  if (box.value === "") box.value = sessionStorage.getItem(key) || "";
  box.addEventListener("input", () => sessionStorage.setItem(key, box.value));
  box.form.addEventListener("submit", () => sessionStorage.removeItem(key));
}

// A canned answer goes where the cursor is.
document.addEventListener("htmx:afterSwap", () => {
  const found = document.querySelector("#canned-text[data-text]");
  const box = document.querySelector("#f-text");
  if (!found || !box) return;
  box.setRangeText(found.dataset.text, box.selectionStart, box.selectionEnd, "end");
  document.querySelector("#f-format").value = found.dataset.format;
  found.removeAttribute("data-text");
  box.dispatchEvent(new Event("input"));
  box.focus();
});

// Nobody looks: nothing is asked for until they do.
document.addEventListener("htmx:beforeRequest", (event) => {
  const asks = event.detail.elt.getAttribute("hx-trigger") || "";
  if (document.hidden && asks.startsWith("every")) event.preventDefault();
});

// The newest words are in sight, as long as nobody has scrolled up to read older ones.
const talk = () => document.querySelector("#talk");
const isAtEnd = (box) => box.scrollHeight - box.scrollTop - box.clientHeight < 80;
let atEnd = true;
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "talk") atEnd = isAtEnd(talk());
});
document.addEventListener("htmx:afterSettle", () => {
  if (talk() && atEnd) talk().scrollTop = talk().scrollHeight;
});
if (talk()) talk().scrollTop = talk().scrollHeight;
