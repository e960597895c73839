// Shows the received webhooks and keeps the list up to date. A row that is there already is
// changed in place, so that opened data stays open.
"use strict";

const INTERVAL_MS = 2000;
const list = document.getElementById("events");
const live = document.getElementById("events-live");
const texts = document.getElementById("event-texts").dataset;
const rows = new Map();

refresh();

async function refresh() {
  try {
    const response = await fetch("/events.json", { cache: "no-store" });
    show(await response.json());
    say(live.dataset.live, "live");
  } catch {
    say(live.dataset.paused, "paused");
  }
  setTimeout(refresh, INTERVAL_MS);
}

function say(text, state) {
  if (live.textContent !== text) live.textContent = text;
  live.dataset.state = state;
}

function show(deliveries) {
  document.getElementById("events-none").hidden = deliveries.length > 0;
  const seen = new Set();
  // Oldest first, each put at the top: the list ends up newest first.
  for (const delivery of deliveries.reverse()) {
    const key = `${delivery.delivery_id} ${delivery.received_at}`;
    seen.add(key);
    if (!rows.has(key)) {
      rows.set(key, row(delivery));
      list.prepend(rows.get(key));
    }
    const tries = delivery.tries > 1 ? ` · ${texts.tries}: ${delivery.tries}` : "";
    rows.get(key).querySelector(".tries").textContent = tries;
  }
  for (const [key, element] of rows) {
    if (!seen.has(key)) {
      element.remove();
      rows.delete(key);
    }
  }
}

function row(delivery) {
  const item = document.getElementById("event").content.firstElementChild.cloneNode(true);
  const valid = delivery.signature_valid;
  item.dataset.deliveryId = delivery.delivery_id;
  item.dataset.event = delivery.event ?? "";
  item.querySelector(".event-name").textContent = delivery.event ?? texts.refused;
  const mark = item.querySelector(".mark");
  mark.textContent = valid ? `✓ ${texts.valid}` : `✗ ${texts.invalid}`;
  mark.classList.add(valid ? "is-good" : "is-bad");
  const time = item.querySelector("time");
  time.dateTime = delivery.received_at;
  time.textContent = new Date(delivery.received_at).toLocaleTimeString(document.documentElement.lang);
  item.querySelector(".delivery-id").textContent = delivery.delivery_id;
  item.querySelector("pre").textContent = JSON.stringify(delivery.data, null, 2);
  item.querySelector("details").hidden = !valid;
  return item;
}
