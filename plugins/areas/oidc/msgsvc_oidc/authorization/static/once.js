"use strict";

// A second press while the first is under way would only be told that the question was answered.
addEventListener("submit", (event) => {
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});

// A page that the browser's Back button shows as it was can be answered again.
addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});
