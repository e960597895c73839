// Makes the element of one message. Texts go in as text nodes; links only to web addresses.

import { copyOf, fileUrl, safeUrl, word } from "./page.js";
import { fillTime } from "./times.js";

const TAGS = { bold: "b", italic: "i", underline: "u", strike: "s", code: "code", pre: "code" };

/**
 * `onPress(button, message, row, column)` is called for a button that tells the bot something; `quoted` is
 * the message that this one answers, where it is known.
 */
export function messageElement(message, onPress, quoted) {
  if (message.kind === "start") return startedElement(message);
  const element = copyOf("message");
  element.dataset.author = message.author;
  element.dataset.ref = message.ref;
  element.querySelector(message.author === "person" ? "[data-act=edit]" : "[data-act=reply]").hidden = false;
  const quote = element.querySelector(".quote");
  quote.hidden = !quoted;
  quote.textContent = quoted ? wordsOf(quoted) : "";
  element.querySelector(".author").textContent = message.author === "person" ? word("you") : "";
  element.querySelector(".text").append(...message.spans.map(spanNode));
  if (message.media) element.querySelector(".media").append(mediaElement(message.media));
  element.querySelector(".silent").hidden = !message.silent;
  element.querySelector(".edited").hidden = message.edited_at_ms === null;
  fillTime(element.querySelector("time"), message.sent_at_ms);
  const rows = message.buttons.map((row, number) => rowElement(message, row, number, onPress));
  element.querySelector(".buttons").append(...rows);
  return element;
}

function startedElement(message) {
  const element = copyOf("started");
  element.querySelector("code").textContent = textOf(message);
  return element;
}

/** The words of a message, or what it is where it has none. */
export function wordsOf(message) {
  return textOf(message) || (message.media ? message.media.filename || word(message.media.type) : "");
}

/** The words of a message, for the list of chats. */
export function textOf(message) {
  return message.spans.map((span) => span.text).join("");
}

function spanNode(span) {
  let node = document.createTextNode(span.text);
  for (const mark of [...span.marks].reverse()) {
    const element = document.createElement(TAGS[mark] ?? "span");
    if (mark === "pre") element.className = "pre";
    element.append(node);
    node = element;
  }
  const href = span.href && safeUrl(span.href);
  if (!href) return node;
  const link = document.createElement("a");
  Object.assign(link, { href, target: "_blank", rel: "noopener noreferrer" });
  link.append(node);
  return link;
}

function rowElement(message, row, rowNumber, onPress) {
  const element = document.createElement("div");
  element.className = "button-row";
  row.forEach((button, column) => element.append(buttonElement(message, button, rowNumber, column, onPress)));
  return element;
}

function buttonElement(message, button, row, column, onPress) {
  if (button.url !== null) {
    const link = copyOf("button-url");
    link.querySelector("span").textContent = button.text;
    const href = safeUrl(button.url);
    if (href) link.href = href;
    return link;
  }
  const element = copyOf("button-data");
  element.textContent = button.text;
  element.addEventListener("click", () => onPress(element, message, row, column));
  return element;
}

function mediaElement(media) {
  const href = media.file_id ? fileUrl(media.file_id) : safeUrl(media.url);
  if (!href) return copyOf("media-broken");
  if (media.type === "document") {
    const link = copyOf("media-document");
    link.href = href;
    link.querySelector("span").textContent = media.filename ?? decodedName(href);
    return link;
  }
  const element = copyOf(`media-${media.type}`);
  element.src = href;
  if (media.filename && media.type === "image") element.alt = media.filename;
  element.addEventListener("error", () => {
    const broken = copyOf("media-broken");
    broken.href = href;
    element.replaceWith(broken);
  });
  return element;
}

function decodedName(href) {
  const last = new URL(href).pathname.split("/").at(-1);
  try {
    return decodeURIComponent(last) || href;
  } catch {
    return last;
  }
}
