// The messages of the chat that is open: kept in order, and at the newest while one reads there.

import { byId, copyOf } from "./page.js";
import { messageElement } from "./messages.js";
import { dayName, dayOf } from "./times.js";

const NEAR_PX = 80;

export class Log {
  #log = byId("log");
  #list = byId("messages");
  #jump = byId("jump");
  #shown = new Map();
  #onPress;
  #following = true;
  #lastTop = 0;

  constructor(onPress) {
    this.#onPress = onPress;
    this.#log.addEventListener("scroll", () => this.#scrolled());
    this.#jump.addEventListener("click", () => this.#toEnd());
    // A picture that arrives late must not push the newest message out of sight.
    new ResizeObserver(() => this.#following && this.#toEnd()).observe(this.#list);
    new ResizeObserver(() => this.#following && this.#toEnd()).observe(this.#log);
  }

  /** Shows another chat: nothing of it is announced, as it was there before. */
  open(messages) {
    this.#log.setAttribute("aria-live", "off");
    this.#shown.clear();
    this.#list.replaceChildren();
    this.#following = true;
    this.update(messages, false);
    this.#toEnd();
    requestAnimationFrame(() => this.#log.setAttribute("aria-live", "polite"));
  }

  /** Brings what is shown in line with `messages`, which are in order. */
  update(messages, fresh = true) {
    const newest = [...this.#shown.keys()].at(-1);
    const hadFocus = this.#list.contains(document.activeElement);
    const wanted = this.#elements(messages, fresh);
    wanted.forEach((element, index) => {
      if (this.#list.children[index] !== element) {
        this.#list.insertBefore(element, this.#list.children[index] ?? null);
      }
    });
    while (this.#list.children.length > wanted.length) this.#list.lastElementChild.remove();
    // The pressed button may be gone with an edit; the keyboard stays in the chat.
    if (hadFocus && !this.#list.contains(document.activeElement)) this.#log.focus({ preventScroll: true });
    const last = messages.at(-1);
    if (this.#following || last?.author === "person") this.#toEnd();
    else if (fresh && last && last.ref !== newest) this.#jump.hidden = false;
  }

  /** Adds messages above without moving those in sight. */
  prepend(messages) {
    const fromEnd = this.#log.scrollHeight - this.#log.scrollTop;
    this.#log.setAttribute("aria-live", "off");
    this.update(messages, false);
    this.#log.scrollTop = this.#log.scrollHeight - fromEnd;
    requestAnimationFrame(() => this.#log.setAttribute("aria-live", "polite"));
  }

  /** Ends the waiting of pressed buttons. */
  answered() {
    for (const button of this.#list.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
  }

  #elements(messages, fresh) {
    const elements = [];
    const shown = new Map();
    let day = null;
    for (const message of messages) {
      if (dayOf(message.sent_at_ms) !== day) {
        day = dayOf(message.sent_at_ms);
        elements.push(this.#dayElement(day, message.sent_at_ms));
      }
      const entry = this.#entry(message, messages, fresh);
      shown.set(message.ref, entry);
      elements.push(entry.element);
    }
    this.#shown = shown;
    return elements;
  }

  #entry(message, messages, fresh) {
    const known = this.#shown.get(message.ref);
    if (known?.revision === message.revision) return known;
    const element = messageElement(message, this.#onPress, messages.find(({ ref }) => ref === message.reply_to));
    element.classList.toggle("fresh", fresh && !known);
    return { element, revision: message.revision };
  }

  #dayElement(day, ms) {
    const found = [...this.#list.querySelectorAll(".day")].find((element) => element.dataset.day === day);
    const element = found ?? copyOf("day");
    element.dataset.day = day;
    element.firstElementChild.textContent = dayName(ms);
    return element;
  }

  #scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.#log;
    // Only going up stops the following: growing content also moves the end away.
    if (scrollHeight - scrollTop - clientHeight < NEAR_PX) this.#following = true;
    else if (scrollTop < this.#lastTop) this.#following = false;
    this.#lastTop = scrollTop;
    if (this.#following) this.#jump.hidden = true;
  }

  #toEnd() {
    this.#following = true;
    this.#jump.hidden = true;
    this.#log.scrollTop = this.#log.scrollHeight;
  }
}
