// Follows the sign-in, and goes on to the site once it is confirmed. Without it the page reloads itself.

const page = document.getElementById("sign-in");
const status = document.getElementById("status");
const lasts = document.getElementById("lasts");
const words = page.dataset;

/** Seconds that the service may hold an answer, and that pass after a failure; the latter double. */
const WAIT_S = 25;
const PAUSE_S = 1;
const MOST_PAUSE_S = 20;

const endsAt = Date.now() + Number(words.expiresIn) * 1000;
let goOn = () => {};
let left = false;

/** Leaves for another address, in this page's place: `back` must not lead here again. */
function leave(address) {
  left = true;
  location.replace(address);
}

/** Changes the text only if it is another one, or a screen reader says it again. */
function say(text) {
  if (status.textContent !== text) status.textContent = text;
}

async function ask() {
  const query = new URLSearchParams({ key: words.key, page: words.page, wait: WAIT_S });
  if (words.checking) query.set("checking", "1");
  const response = await fetch(`${words.statusUrl}?${query}`, {
    headers: { Accept: "application/json" },
    cache: "no-store",
  });
  // This browser's sign-in is gone, or there never was a cookie: the page that says so knows more.
  if (response.status === 404) return { status: "lost" };
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.json();
}

/** Waits that long, or until the person looks at the page again. */
function rest(seconds) {
  return new Promise((resolve) => {
    goOn = resolve;
    setTimeout(resolve, seconds * 1000);
  });
}

async function follow() {
  let pause = PAUSE_S;
  for (;;) {
    try {
      const now = await ask();
      if (now.status === "confirmed") {
        say(words.confirmed);
        return leave(now.location);
      }
      // Also when the platform has not confirmed who it is: the page says why.
      if (now.status !== "pending" || now.checking === false) return leave(words.here);
      say(words.waiting);
      pause = PAUSE_S;
    } catch {
      if (left) return;
      say(words.trouble);
      await rest(pause);
      pause = Math.min(pause * 2, MOST_PAUSE_S);
    }
  }
}

function tick() {
  const seconds = Math.max(0, Math.ceil((endsAt - Date.now()) / 1000));
  const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  lasts.textContent = words.lasts.replace("{time}", time);
}

// A page that the browser kept aside shows what was, not what is.
addEventListener("pageshow", (event) => {
  if (event.persisted) leave(words.here);
});
addEventListener("pagehide", () => { left = true; });
document.addEventListener("visibilitychange", () => { if (!document.hidden) goOn(); });

tick();
setInterval(tick, 1000);
follow();
