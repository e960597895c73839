/** What a sign-in looks like: the panel with the messengers, and the progress that both kinds of pages show. */

import { make } from "./dom.js";
import { qrPath } from "./qr.js";
import type { Messenger, SignIn, State } from "./sign-in.js";
import type { Texts } from "./texts.js";

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
export function createProgress(texts: Texts): View {
  const status = make("p", { part: "status", role: "status" });
  const time = make("p", { part: "time" });
  const pulse = make("span", { part: "pulse" });
  return {
    root: make("div", { part: "progress" }, pulse, status, time),
    show(state) {
      const seconds = Math.max(0, Math.ceil((state.endsAt - Date.now()) / 1000));
      const said = sentence(texts, state);
      // The same text again would be read aloud again.
      if (status.textContent !== said) status.textContent = said;
      const clock = `${(seconds / 60) | 0}:${`${seconds % 60}`.padStart(2, "0")}`;
      time.textContent = texts.left.replace("{time}", clock);
      time.hidden = pulse.hidden = state.status !== "pending";
    },
  };
}

const isEnding = (state: State) => state.endsAt - Date.now() < ENDING_MS;

function sentence(texts: Texts, state: State): string {
  if (state.status !== "pending") return texts[state.status as Exclude<State["status"], "idle" | "pending">];
  return state.connected ? (isEnding(state) ? texts.ending : texts.waiting) : texts.offline;
}

/** The panel of a page that has no view of its own. */
export function createPanel(
  signIn: Pick<SignIn, "start" | "cancel">,
  texts: Texts,
  title: string,
): View<HTMLDialogElement> {
  const heading = make("h2", { part: "title", tabindex: "-1" }, title);
  const lead = make("p", { part: "lead" });
  const number = make("p", { part: "number" });
  const links = make("ul", { part: "links", role: "list" });
  const codes = make("div", { part: "codes" });
  const progress = createProgress(texts);
  const again = make("button", { part: "again" });
  const cancel = make("button", { part: "cancel" }, texts.cancel);
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
        lead.textContent = match === null ? texts.lead : texts.leadNumber;
        number.textContent = `${match}`;
        links.replaceChildren(...messengers.map((messenger) => linkTo(messenger, texts)));
        codes.replaceChildren(...messengers.map((messenger, at) => codeOf(messenger, texts, !at)));
      }
      lead.hidden = links.hidden = codes.hidden = !pending;
      number.hidden = !pending || match === null;
      progress.show(state);
      again.textContent = ended ? texts.again : texts.more;
      again.hidden = !ended && !(pending && isEnding(state));
      // Whoever stood on what is gone now would begin again at the top of the page.
      if (focused && !focused.checkVisibility()) heading.focus();
    },
  };
}

function linkTo({ channel, name, url, startMessage }: Messenger, texts: Texts): HTMLElement {
  const told = make("span", {}, ` (${texts.newTab})`);
  const attributes = { part: "link", href: url, target: "_blank", rel: "noopener noreferrer", "data-channel": channel };
  const item = make("li", {}, make("a", attributes, texts.open.replace("{name}", name), told));
  if (startMessage) item.append(make("p", { part: "write" }, texts.write, " ", make("strong", {}, startMessage)));
  return item;
}

/** A code, of which one is open at a time; none on a phone, which can't scan its own screen. */
function codeOf({ channel, name, url }: Messenger, texts: Texts, isFirst: boolean): HTMLElement | string {
  const code = qrPath(url);
  if (!code) return "";
  const label = texts.scan.replace("{name}", name);
  const size = code.size + 2 * BORDER;
  const image = make(
    "svg",
    {
      part: "qr",
      role: "img",
      "aria-label": label,
      "data-channel": channel,
      viewBox: `-${BORDER} -${BORDER} ${size} ${size}`,
      "shape-rendering": "crispEdges",
    },
    make("path", { d: code.d }),
  );
  const details = make("details", { part: "code", name: "code" }, make("summary", { part: "summary" }, label), image);
  details.open = isFirst && !matchMedia("(hover: none)").matches;
  return details;
}
