// Keeps every pending sign-in on the page up to date. The texts come from the server, which knows
// the language; here is only the timing.
"use strict";

// How long a failed poll waits at most before the next one, in seconds.
const MAX_PAUSE_S = 15;

for (const status of document.querySelectorAll("[data-poll]")) {
  watch(status);
  countDown(status);
}

async function watch(status) {
  const interval = Number(status.dataset.intervalS);
  let failures = 0;
  for (;;) {
    await pause(Math.min(interval * 2 ** failures, MAX_PAUSE_S));
    const answer = await ask(status.dataset.poll);
    failures = answer.status === "trouble" ? failures + 1 : 0;
    // Only a change is written: screen readers would repeat the same sentence every poll.
    const message = answer.message || status.dataset.trouble;
    if (status.textContent !== message) status.textContent = message;
    status.dataset.status = answer.status;
    if (answer.status === "signed_in") return location.replace("/");
    if (answer.status === "denied" || answer.status === "expired") return finish(status);
  }
}

async function ask(address) {
  try {
    const response = await fetch(address, { cache: "no-store" });
    return await response.json();
  } catch {
    return { status: "trouble" };
  }
}

// The links and codes of a sign-in that is over would only mislead, so a fresh start takes
// their place. The status stays, as it says what happened.
function finish(status) {
  const panel = status.closest(".waiting");
  const again = panel.querySelector("form");
  for (const part of panel.children) part.hidden = part !== status && part !== again;
  panel.classList.add("is-over");
}

function countDown(status) {
  const line = status.parentElement.querySelector(".left");
  const expires = Number(status.dataset.expiresAt) * 1000;
  line.hidden = false;
  const tick = () => {
    const left = Math.max(0, Math.round((expires - Date.now()) / 1000));
    const seconds = String(left % 60).padStart(2, "0");
    line.querySelector("span").textContent = `${Math.floor(left / 60)}:${seconds}`;
  };
  tick();
  setInterval(tick, 1000);
}

function pause(seconds) {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}
