"use strict";

// Every request of htmx shows that it comes from a page of ours.
document.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers["X-CSRF-Token"] = document.querySelector('meta[name="csrf"]').content;
});
