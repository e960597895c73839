/** What a sign-in looks like: the panel with the messengers, and the progress that both kinds of pages show. */

import { make } from "./dom.js";
import { qrPath } from "./qr.js";
import type { Messenger, SignIn, State } from "./sign-in.js";
import type { Name, Put } from "./texts.js";

/** The quiet zone around a QR code, in modules (ISO/IEC 18004). */
const BORDER = 4;
/** Milliseconds before the end at which more time is offered. */
const ENDING_MS = 60_000;

export interface View<E extends HTMLElement = HTMLElement> {
  readonly root: E;
  /** Shows a state; also called each second while one waits. */
  show(state: State): void;
}

/** How it stands, and how long it lasts. The time is not announced: a screen reader would read each second. */
export function createProgress(put: Put): View {
  const status = make("p", { part: "status", role: "status" });
  const time = make("p", { part: "time" });
  const pulse = make("span", { part: "pulse" });
  let said: Name;
  return {
    root: make("div", { part: "progress" }, pulse, status, time),
    show(state) {
      const seconds = Math.max(0, Math.ceil((state.endsAt - Date.now()) / 1000));
      const name = sentence(state);
      // The same text again would be read aloud again.
      if (said !== name) put(status, (said = name));
      const clock = `${(seconds / 60) | 0}:${`${seconds % 60}`.padStart(2, "0")}`;
      put(time, "left", clock);
      time.hidden = pulse.hidden = state.status !== "pending";
    },
  };
}

const isEnding = (state: State) => state.endsAt - Date.now() < ENDING_MS;

function sentence(state: State): Name {
  if (state.status !== "pending") return state.status as Exclude<State["status"], "idle" | "pending">;
  return state.connected ? (isEnding(state) ? "ending" : "waiting") : "offline";
}

/** The panel of a page that has no view of its own. */
export function createPanel(
  signIn: Pick<SignIn, "start" | "cancel">,
  put: Put,
  title: string,
): View<HTMLDialogElement> {
  const heading = make("h2", { part: "title", tabindex: "-1" }, title);
  const lead = make("p", { part: "lead" });
  const number = make("p", { part: "number" });
  const links = make("ul", { part: "links", role: "list" });
  const codes = make("div", { part: "codes" });
  const progress = createProgress(put);
  const again = make("button", { part: "again" });
  const cancel = put(make("button", { part: "cancel" }), "cancel");
  // What comes while the focus is on the heading is read aloud.
  const told = make("div", { "aria-live": "polite" }, heading, lead, number);
  const content = [told, links, codes, progress.root, again, cancel];
  const root = make("dialog", { part: "panel", "aria-label": title }, ...content);
  root.onclick = (event) => {
    // The second of a double click on the link is not meant for what has come under the pointer.
    if (event.detail > 1) event.preventDefault();
    else if (event.target === again) void signIn.start();
    else if (event.target === cancel) signIn.cancel();
  };
  let shown: readonly Messenger[];

  return {
    root,
    show(state) {
      const { status, messengers, number: match } = state;
      const pending = status === "pending";
      const ended = ["denied", "expired", "failed"].includes(status);
      const focused = root.querySelector(":focus");
      if (shown !== messengers) {
        shown = messengers;
        put(lead, match === null ? "lead" : "leadNumber");
        number.textContent = `${match}`;
        links.replaceChildren(...messengers.map((messenger) => linkTo(messenger, put)));
        codes.replaceChildren(...messengers.map((messenger, at) => codeOf(messenger, put, !at)));
      }
      lead.hidden = links.hidden = codes.hidden = !pending;
      number.hidden = !pending || match === null;
      progress.show(state);
      put(again, ended ? "again" : "more");
      again.hidden = !ended && !(pending && isEnding(state));
      // Whoever stood on what is gone now would begin again at the top of the page.
      if (focused && !focused.checkVisibility()) heading.focus();
    },
  };
}

function linkTo({ channel, name, url, startMessage }: Messenger, put: Put): HTMLElement {
  const told = make("span", {}, " (", put(make("span", {}), "newTab"), ")");
  const attributes = { part: "link", href: url, target: "_blank", rel: "noopener noreferrer", "data-channel": channel };
  const item = make("li", {}, put(make("a", attributes), "open", name, told));
  const write = make("p", { part: "write" });
  if (startMessage) item.append(put(write, "write", "", " ", make("strong", {}, startMessage)));
  return item;
}

/** A code, of which one is open at a time; none on a phone, which can't scan its own screen. */
function codeOf({ channel, name, url }: Messenger, put: Put, isFirst: boolean): HTMLElement | string {
  const code = qrPath(url);
  if (!code) return "";
  const summary = put(make("summary", { part: "summary" }), "scan", name);
  const size = code.size + 2 * BORDER;
  const image = make(
    "svg",
    {
      part: "qr",
      role: "img",
      "aria-label": summary.textContent,
      "data-channel": channel,
      viewBox: `-${BORDER} -${BORDER} ${size} ${size}`,
      "shape-rendering": "crispEdges",
    },
    make("path", { d: code.d }),
  );
  const details = make("details", { part: "code", name: "code" }, summary, image);
  details.open = isFirst && !matchMedia("(hover: none)").matches;
  return details;
}
