// What the person writes: a text, an answer, a file, or a change of what stands there already.

import * as api from "./api.js";
import { wordsOf } from "./messages.js";
import { byId, tell, word } from "./page.js";

const MAX_CAPTION = 1000;

export class Composer {
  #field = byId("composer-text");
  #file = byId("attached");
  #channel;
  #attempt;
  #about = null;

  /** `channel()` is the open chat; `attempt(act)` tells whether `act` has succeeded. */
  constructor(channel, attempt) {
    this.#channel = channel;
    this.#attempt = attempt;
    byId("composer").addEventListener("submit", (event) => this.#send(event));
    this.#field.addEventListener("input", () => this.#fit());
    this.#field.addEventListener("keydown", (event) => this.#key(event));
    byId("attach").addEventListener("click", () => this.#file.click());
    this.#file.addEventListener("change", () => this.#attach());
    byId("about-end").addEventListener("click", () => this.leave());
  }

  /** From now on what is written is a change of a message, or an answer to one: `edit` or `reply`. */
  begin(what, message) {
    this.#about = { what, ref: message.ref };
    byId("about-what").textContent = word(what === "edit" ? "editing" : "replying");
    byId("about-text").textContent = wordsOf(message);
    byId("about").hidden = false;
    if (what === "edit") this.#write(message.spans.map((span) => span.text).join(""));
    this.#field.focus();
  }

  /** What is written is a message of its own again. */
  leave() {
    if (this.#about?.what === "edit") this.#write("");
    this.#about = null;
    byId("about").hidden = true;
  }

  focus() {
    this.#field.focus();
  }

  async #send(event) {
    event.preventDefault();
    const text = this.#field.value.trim();
    if (!text) return;
    const [channel, about] = [this.#channel(), this.#about];
    this.leave();
    this.#write("");
    const act = () =>
      about?.what === "edit" ? api.editText(channel, about.ref, text) : api.sendText(channel, text, about?.ref);
    if (!(await this.#attempt(act))) this.#field.value ||= text;
  }

  /** What is written goes with the file. */
  async #attach() {
    const [file] = this.#file.files;
    if (!file) return;
    const text = this.#field.value.trim().slice(0, MAX_CAPTION);
    this.leave();
    this.#write("");
    try {
      await api.sendFile(this.#channel(), file, text);
    } catch (error) {
      tell(word([400, 413].includes(error.status) ? "badFile" : "failed"));
      this.#field.value ||= text;
    }
    this.#file.value = "";
  }

  #key(event) {
    if (event.key === "Escape") this.leave();
    const plain = event.key === "Enter" && !event.shiftKey && !event.isComposing;
    if (plain && matchMedia("(pointer: fine)").matches) this.#send(event);
  }

  #write(text) {
    this.#field.value = text;
    this.#fit();
  }

  /** Grows the field with its text where the browser does not do so by itself. */
  #fit() {
    if (CSS.supports("field-sizing", "content")) return;
    this.#field.style.height = "auto";
    this.#field.style.height = `${this.#field.scrollHeight + 2}px`;
  }
}
