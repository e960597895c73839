/** `<msgsvc-signin>`: signs in on the page where the link in it stands, or follows what the server began. */

import { make } from "./dom.js";
import { createSignIn, type Options, type State } from "./sign-in.js";
import css from "./style.css";
import { createPut } from "./texts.js";
import { createPanel, createProgress, type View } from "./view.js";

/** Loaded on a server, there is nothing to extend. */
const Base = (globalThis.HTMLElement ?? Object) as typeof HTMLElement;

/**
 * Attributes: `session`, `inline` and `csrf-token`; of a page whose sign-in the server began, `status-url`,
 * `expires-in` and `ended-url`. Texts are replaced by `data-lead`, `data-lead-number` and so on.
 *
 * Fires `msgsvc-signin:change`, and `msgsvc-signin:completed`, whose default is to go to `redirect`, or
 * without one to submit the form around it. The state is their `detail`.
 */
export class MsgsvcSignIn extends Base {
  /** Sent along when a sign-in is begun. */
  headers: Record<string, string> = {};

  readonly #root = this.attachShadow({ mode: "open" });
  readonly #slot = make("slot", {});
  readonly #options: Options = { session: "" };
  readonly #signIn = createSignIn(this.#options);
  #view: View | undefined;
  #status: State["status"] = "idle";
  #timer: ReturnType<typeof setInterval> | undefined;
  /** The link or the button that was pressed. */
  #trigger: HTMLElement | null = null;
  #passes = false;

  constructor() {
    super();
    const sheet = new CSSStyleSheet();
    // Made by a script: `style-src 'self'` has nothing to refuse.
    sheet.replaceSync(css);
    this.#root.adoptedStyleSheets = [sheet];
    this.#root.append(this.#slot);
    this.#signIn.subscribe((state) => this.#show(state));
    this.addEventListener("click", (event) => this.#press(event));
  }

  get state(): State {
    return this.#signIn.state;
  }

  /** As the link does. */
  start(): Promise<void> {
    const token = this.getAttribute("csrf-token");
    const headers = { ...(token && { "X-CSRF-Token": token }), ...this.headers };
    Object.assign(this.#options, { session: this.#session, headers });
    return this.#signIn.start();
  }

  cancel(): void {
    this.#signIn.cancel();
  }

  connectedCallback(): void {
    const url = this.#followed;
    if (url) void this.#signIn.follow(url, +this.getAttribute("expires-in")!);
  }

  disconnectedCallback(): void {
    this.cancel();
  }

  /** Where to follow the sign-in that the server began. */
  get #followed(): string | null {
    return this.getAttribute("status-url");
  }

  get #session(): string {
    return this.getAttribute("session") ?? this.querySelector("a")?.href ?? "";
  }

  #press(event: MouseEvent): void {
    const trigger = (event.target as Element).closest<HTMLElement>("a, button");
    const isTheBrowsers = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.defaultPrevented;
    if (!trigger || isTheBrowsers || this.#followed || this.#passes) return;
    // What another site does with a POST is not ours to know.
    if (new URL(this.#session, document.baseURI).origin !== location.origin) return;
    event.preventDefault();
    this.#trigger = trigger;
    void this.start();
  }

  #show(state: State): void {
    const { status } = state;
    const before = this.#status;
    this.#status = status;
    clearInterval(this.#timer);
    if (state.refusal && before === "starting") return this.#fallBack();
    if (status === "idle") this.#close();
    else (this.#view ??= this.#open()).show(state);
    if (status === "pending") this.#timer = setInterval(() => this.#view!.show(state), 1000);
    this.#fire("change");
    if (status === before) return;
    const ended = this.getAttribute("ended-url");
    if (status === "confirmed") this.#complete(state);
    else if (ended && state.endsAt && status !== "pending") location.replace(ended);
  }

  #open(): View {
    const tag = this.closest<HTMLElement>("[lang]")?.lang || navigator.language;
    const put = createPut(tag, this.dataset);
    if (this.#followed) {
      const progress = createProgress(put);
      this.#root.append(progress.root);
      return progress;
    }
    const panel = createPanel(this, put, this.#trigger?.textContent ?? this.textContent ?? "");
    const dialog = panel.root;
    dialog.onclose = () => this.cancel();
    this.#root.append(dialog);
    this.#slot.hidden = this.hasAttribute("inline");
    if (this.#slot.hidden) dialog.show();
    else dialog.showModal();
    dialog.querySelector("h2")!.focus();
    return panel;
  }

  #close(): void {
    const isInside = this.#root.activeElement;
    this.#view?.root.remove();
    this.#view = undefined;
    this.#slot.hidden = false;
    if (isInside) this.#trigger?.focus();
  }

  /** The site has no answer for scripts, or it refused: it says so itself where the link leads. */
  #fallBack(): void {
    this.cancel();
    this.#passes = true;
    this.#trigger?.click();
    this.#passes = false;
  }

  #complete({ redirect }: State): void {
    // `back` may bring the page as it was left.
    addEventListener("pagehide", () => this.cancel(), { once: true });
    if (!this.#fire("completed")) return;
    if (!redirect) this.closest("form")?.requestSubmit();
    // `back` must not lead to a page whose sign-in is over.
    else if (this.#followed) location.replace(redirect);
    else location.assign(redirect);
  }

  #fire(name: string): boolean {
    const init = { bubbles: true, composed: true, cancelable: true, detail: this.state };
    return this.dispatchEvent(new CustomEvent(`msgsvc-signin:${name}`, init));
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "msgsvc-signin": MsgsvcSignIn;
  }
  interface HTMLElementEventMap {
    "msgsvc-signin:change": CustomEvent<State>;
    "msgsvc-signin:completed": CustomEvent<State>;
  }
}
