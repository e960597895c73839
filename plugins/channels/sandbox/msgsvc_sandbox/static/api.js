// Calls the messenger's JSON API.

import { personId, root } from "./page.js";

export class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function call(method, path, body) {
  const isForm = body instanceof FormData;
  const headers = body === undefined || isForm ? {} : { "Content-Type": "application/json" };
  const sent = isForm ? body : JSON.stringify(body);
  const answer = await fetch(`${root}/api${path}`, { method, headers, body: sent });
  if (answer.status === 204) return null;
  const data = await answer.json();
  if (!answer.ok) throw new Refusal(answer.status, data.code, data.error);
  return data;
}

const me = `/people/${encodeURIComponent(personId)}`;
const chat = (channel) => `${me}/chats/${encodeURIComponent(channel)}`;

export const state = (since, waitS) => call("GET", `${me}/state?since=${since}&wait=${waitS}`);
export const earlier = (channel, before) => call("GET", `${chat(channel)}/messages?before=${before}`);
export const openLink = (link) => call("POST", `${me}/open`, { link });
export const start = (channel) => call("POST", `${me}/open`, { channel });
export const sendText = (channel, text, replyTo = null) =>
  call("POST", `${chat(channel)}/messages`, { text, reply_to: replyTo });
export const editText = (channel, ref, text) =>
  call("PATCH", `${chat(channel)}/messages/${ref}`, { text });
export const sendFile = (channel, file, text) => {
  const form = new FormData();
  form.append("file", file);
  return call("POST", `${chat(channel)}/files?text=${encodeURIComponent(text)}`, form);
};
export const press = (channel, ref, row, column) =>
  call("POST", `${chat(channel)}/messages/${ref}/press`, { row, column });
export const markRead = (channel) => call("POST", `${chat(channel)}/read`);
export const setBlocked = (channel, blocked) => call("PUT", `${chat(channel)}/blocked`, { blocked });
export const changePerson = (change) => call("PATCH", me, change);
export const deletePerson = () => call("DELETE", me);
export const setFault = (channel, fault) =>
  call("PUT", `/bots/${encodeURIComponent(channel)}/fault`, fault);
