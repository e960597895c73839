// Nothing here is needed: it keeps a second click from sending twice, and leads to what is to be mended.
"use strict";

const form = document.querySelector("form");
const button = form.querySelector("button");
const words = button.textContent;

form.addEventListener("submit", (event) => {
  if (button.getAttribute("aria-disabled") === "true") {
    event.preventDefault();
    return;
  }
  button.setAttribute("aria-disabled", "true");
  button.textContent = form.dataset.sending;
});

// Back to this page, as the browser kept it.
addEventListener("pageshow", () => {
  button.removeAttribute("aria-disabled");
  button.textContent = words;
});

document.querySelector("#notice")?.focus();
