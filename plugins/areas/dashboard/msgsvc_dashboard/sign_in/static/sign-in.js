"use strict";

// Tells in which time zone somebody is, for who has chosen none, and looks for a Yes in the messenger.

for (const field of document.querySelectorAll('input[name="timezone"]')) {
  field.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
}

const page = document.getElementById("waiting");
const PAUSE_MS = 2000;

async function look() {
  if (document.hidden) return;
  const response = await fetch(page.dataset.statusUrl, { cache: "no-store" });
  if (!response.ok) return;
  const answer = await response.json();
  if (answer.status !== "pending") location.reload();
}

if (page) {
  // A service that is away for a moment is asked again.
  setInterval(() => look().catch(() => {}), PAUSE_MS);
  document.addEventListener("visibilitychange", () => look().catch(() => {}));
}
