// The list of bots: those written with last come first, those not started yet last.

import { fillAvatar } from "./avatars.js";
import { byId, copyOf, word } from "./page.js";
import { textOf } from "./messages.js";
import { fillTime } from "./times.js";

const rows = new Map();

/** `chats` are `{bot, chat, last}`; `chat` and `last` may be missing. */
export function showChats(chats, openChannel) {
  const list = byId("chat-list");
  const sorted = [...chats].sort((a, b) => (b.last?.sent_at_ms ?? 0) - (a.last?.sent_at_ms ?? 0));
  const elements = sorted.map((entry) => fillRow(entry, openChannel));
  elements.forEach((element, index) => {
    if (list.children[index] !== element) list.insertBefore(element, list.children[index] ?? null);
  });
  while (list.children.length > elements.length) list.lastElementChild.remove();
  if (elements.length === 0) list.textContent = word("noBots");
}

function fillRow({ bot, chat, last }, openChannel) {
  const element = rows.get(bot.channel) ?? copyOf("chat-row");
  rows.set(bot.channel, element);
  const link = element.querySelector("a");
  link.href = `#${encodeURIComponent(bot.channel)}`;
  if (bot.channel === openChannel) link.setAttribute("aria-current", "true");
  else link.removeAttribute("aria-current");
  fillAvatar(element.querySelector(".avatar"), bot.title, bot.channel);
  element.querySelector(".chat-row-name").textContent = bot.title;
  element.querySelector(".chat-row-last").textContent = preview(chat, last);
  const time = element.querySelector("time");
  time.hidden = !last;
  if (last) fillTime(time, last.sent_at_ms, true);
  const unread = element.querySelector(".unread");
  unread.hidden = !chat?.unread;
  unread.querySelector("b").textContent = chat?.unread ?? "";
  return element;
}

function preview(chat, last) {
  if (!chat) return word("notStarted");
  if (!last) return "";
  if (last.kind === "start") return word("started");
  const text = textOf(last).replace(/\s+/g, " ") || (last.media ? word(last.media.type) : "");
  return last.author === "person" ? `${word("you")} ${text}` : text;
}
