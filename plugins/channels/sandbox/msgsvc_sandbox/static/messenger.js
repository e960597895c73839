// A person's screen: what is known of their chats, kept up to date, and which one is open.

import * as api from "./api.js";
import { fillAvatar } from "./avatars.js";
import { showChats } from "./chat_list.js";
import { Composer } from "./composer.js";
import { editFault, faultWords } from "./fault_dialog.js";
import { follow, setUpLinkDialog } from "./link_dialog.js";
import { Log } from "./log.js";
import { byId, root, tell, word } from "./page.js";
import "./profile_dialog.js";

const WAIT_S = 25;
const PER_CHAT = 50;
const ANSWER_MS = 8000;

const bots = new Map();
const chats = new Map();
const messages = new Map();
const whole = new Set();
const title = document.title;
const log = new Log(press);
const composer = new Composer(() => open, attempt);

let revision = 0;
let open = null;

// ---- what is known

function take(state) {
  if (revision === 0 || state.revision < revision) messages.clear();
  bots.clear();
  state.bots.forEach((bot) => bots.set(bot.channel, bot));
  const noticed = new Map([...chats].map(([channel, chat]) => [channel, chat.notice_revision]));
  chats.clear();
  state.chats.forEach((chat) => chats.set(chat.channel, chat));
  state.messages.forEach(keep);
  const first = revision === 0;
  revision = state.revision;
  if (!first) state.chats.forEach((chat) => showNotice(chat, noticed.get(chat.channel) ?? 0));
}

function keep(message) {
  const known = messages.get(message.channel) ?? new Map();
  messages.set(message.channel, known);
  if (message.deleted) known.delete(message.ref);
  else known.set(message.ref, message);
}

function inOrder(channel) {
  return [...(messages.get(channel)?.values() ?? [])].sort((a, b) => Number(a.ref) - Number(b.ref));
}

function showNotice(chat, noticed) {
  if (chat.notice_revision <= noticed) return;
  if (chat.channel === open) log.answered();
  if (chat.notice) tell(chat.notice);
}

// ---- what is shown

function show() {
  showChats(
    [...bots.values()].map((bot) => ({
      bot,
      chat: chats.get(bot.channel),
      last: inOrder(bot.channel).at(-1),
    })),
    open,
  );
  const unread = [...chats.values()].reduce((sum, chat) => sum + chat.unread, 0);
  document.title = unread ? `(${unread}) ${title}` : title;
  if (open) showOpen();
}

function showOpen() {
  const bot = bots.get(open);
  const chat = chats.get(open);
  const trouble = faultWords(bot.fault);
  byId("chat-title").textContent = bot.title;
  fillAvatar(byId("chat-avatar"), bot.title, bot.channel);
  const status = byId("chat-status");
  status.textContent = trouble || `${word(chat?.blocked ? "blocked" : "bot")} · ${bot.channel}`;
  status.dataset.warn = byId("edit-fault").dataset.warn = trouble ? "yes" : "no";
  byId("composer").hidden = !chat || chat.blocked;
  byId("start-bar").hidden = Boolean(chat);
  byId("blocked-bar").hidden = !chat?.blocked;
  byId("chat-more").hidden = !chat;
  byId("block").hidden = !chat || chat.blocked;
  byId("unblock").hidden = !chat?.blocked;
  const known = inOrder(open);
  byId("earlier").hidden = known.length < PER_CHAT || whole.has(open);
  byId("nothing-yet").hidden = known.length > 0;
  log.update(known);
  if (chat?.unread && document.visibilityState === "visible") api.markRead(open).catch(() => {});
}

/** Follows the address: `#channel` opens a chat, none shows the list. */
function route() {
  const wanted = decodeURIComponent(location.hash.slice(1));
  const changed = wanted !== open;
  open = bots.has(wanted) ? wanted : null;
  document.body.dataset.view = open ? "chat" : "list";
  byId("no-chat").hidden = open !== null;
  byId("chat-head").hidden = byId("log-frame").hidden = open === null;
  for (const id of ["composer", "start-bar", "blocked-bar"]) byId(id).hidden = true;
  if (changed) composer.leave();
  if (open && changed) log.open(inOrder(open));
  show();
  if (open && changed && matchMedia("(pointer: fine)").matches) composer.focus();
}

function goTo(channel) {
  location.hash = `#${encodeURIComponent(channel)}`;
}

// ---- what the person does

async function attempt(act) {
  try {
    await act();
    return true;
  } catch {
    tell(word("failed"));
    return false;
  }
}

async function press(button, message, row, column) {
  if (button.hasAttribute("aria-busy")) return;
  button.setAttribute("aria-busy", "true");
  const pressed = await attempt(() => api.press(message.channel, message.ref, row, column));
  // A bot may never answer; the button must not wait for ever.
  setTimeout(() => button.removeAttribute("aria-busy"), pressed ? ANSWER_MS : 0);
}

async function showEarlier() {
  const oldest = inOrder(open)[0];
  const channel = open;
  await attempt(async () => {
    const { data } = await api.earlier(channel, oldest.ref);
    data.forEach(keep);
    if (data.length < PER_CHAT) whole.add(channel);
    byId("earlier").hidden = whole.has(channel);
    if (channel === open) log.prepend(inOrder(channel));
  });
}

/** A start link in a message opens here, as a messenger's own links do. */
function followInside(event) {
  const link = event.target.closest("a[href]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (!new URL(link.href).pathname.match(/\/sandbox\/open\/[^/]+\/?$/)) return;
  event.preventDefault();
  follow(link.href, goTo, tell);
}

function setUp() {
  setUpLinkDialog(goTo);
  addEventListener("hashchange", route);
  document.addEventListener("visibilitychange", () => open && showOpen());
  byId("messages").addEventListener("click", followInside);
  byId("messages").addEventListener("click", actOn);
  byId("commands-menu").addEventListener("click", sendCommand);
  byId("earlier").addEventListener("click", showEarlier);
  byId("edit-fault").addEventListener("click", () => editFault(bots.get(open)));
  for (const id of ["start", "restart"]) onMenu(id, () => api.start(open));
  onMenu("block", () => api.setBlocked(open, true));
  for (const id of ["unblock", "unblock-here"]) onMenu(id, () => api.setBlocked(open, false));
  for (const button of document.querySelectorAll("[data-close]")) {
    button.addEventListener("click", () => button.closest("dialog").close());
  }
}

/** Answers a message of the bot, or changes one of the person's own. */
function actOn(event) {
  const what = event.target.closest("[data-act]")?.dataset.act;
  const message = what && messages.get(open)?.get(event.target.closest("[data-ref]").dataset.ref);
  if (message) composer.begin(what, message);
}

function sendCommand(event) {
  const command = event.target.closest("[data-command]")?.dataset.command;
  if (!command) return;
  byId("commands-menu").hidePopover();
  attempt(() => api.sendText(open, command));
}

function onMenu(id, act) {
  byId(id).addEventListener("click", () => {
    byId("chat-menu").hidePopover();
    attempt(act);
  });
}

// ---- the life of the page

async function live() {
  let pauseMs = 1000;
  for (;;) {
    try {
      const first = revision === 0;
      take(await api.state(revision, first ? 0 : WAIT_S));
      byId("offline").hidden = true;
      pauseMs = 1000;
      if (first) route();
      else show();
    } catch (error) {
      if (error.status === 404) return location.assign(root);
      byId("offline").hidden = false;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      pauseMs = Math.min(10000, pauseMs * 2);
    }
  }
}

setUp();
live();
