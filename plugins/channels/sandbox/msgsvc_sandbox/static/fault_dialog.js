// The dialog that makes a messenger fail, be slow or answer 429, and the words for it.

import { setFault } from "./api.js";
import { byId, word } from "./page.js";

const dialog = byId("fault-dialog");
const form = byId("fault-form");
const problem = byId("fault-problem");
const retry = byId("fault-retry");
const delay = byId("fault-delay");
const remaining = byId("fault-remaining");

let channel = null;

/** A few words for what is wrong with a messenger; empty when nothing is. */
export function faultWords(fault) {
  const words = [];
  if (fault.reason) {
    const radio = form.querySelector(`input[value="${CSS.escape(fault.reason)}"]`);
    const seconds = fault.reason === "rate_limited" ? ` (${fault.retry_after_s} s)` : "";
    words.push((radio?.dataset.short ?? fault.reason) + seconds);
  }
  if (fault.delay_s) words.push(word("slow", { seconds: fault.delay_s }));
  const text = words.join(", ") + (fault.remaining ? ` × ${fault.remaining}` : "");
  return text && text[0].toUpperCase() + text.slice(1);
}

export function editFault(bot) {
  channel = bot.channel;
  byId("fault-bot").textContent = bot.title;
  for (const radio of form.elements.reason) radio.checked = radio.value === (bot.fault.reason ?? "");
  retry.value = bot.fault.retry_after_s;
  delay.value = bot.fault.delay_s;
  remaining.value = bot.fault.remaining ?? "";
  problem.hidden = true;
  arrange();
  dialog.showModal();
  form.querySelector("input[name=reason]:checked").focus();
}

/** Only fields that mean something are shown. */
function arrange() {
  const reason = form.elements.reason.value;
  byId("retry-field").hidden = reason !== "rate_limited";
  byId("remaining-field").hidden = reason === "" && Number(delay.value) === 0;
}

form.addEventListener("input", arrange);
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const reason = form.elements.reason.value || null;
  const healthy = reason === null && Number(delay.value) === 0;
  try {
    await setFault(channel, {
      reason,
      retry_after_s: reason === "rate_limited" ? Number(retry.value) : 5,
      delay_s: Number(delay.value),
      remaining: healthy || remaining.value === "" ? null : Number(remaining.value),
    });
    dialog.close();
  } catch (error) {
    problem.textContent = word(error.code === "validation_failed" ? "badFault" : "failed");
    problem.hidden = false;
  }
});
