// Counts down, and sends the code in as soon as its last digit is there, once: a correction is sent by hand.
"use strict";

const input = document.querySelector("#code");
const again = document.querySelector("[data-wait]");
const valid = document.querySelector("[data-expires]");
const begun = Date.now();
const left = (seconds) => Math.max(0, Math.ceil(seconds - (Date.now() - begun) / 1000));

let sent = input.getAttribute("aria-invalid") === "true";
input.addEventListener("input", () => {
  if (!sent && input.value.replace(/\D/g, "").length === Number(input.dataset.length)) {
    sent = true;
    input.form.requestSubmit();
  }
});

const label = again?.textContent;

function tick() {
  const seconds = left(Number(valid.dataset.expires));
  const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  valid.textContent = valid.dataset.text.replace("{time}", time);
  if (again) {
    const wait = left(Number(again.dataset.wait));
    again.disabled = wait > 0;
    again.textContent = wait > 0 ? again.dataset.text.replace("{seconds}", wait) : label;
  }
  if (seconds === 0) {
    location.reload();
  } else {
    setTimeout(tick, 1000);
  }
}

tick();
