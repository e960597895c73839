/** Tests of a shop's code against a real service: the example of docs/guides/clients.md. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { Client, MemoryCursorStore, NotFoundError, openWebhook, OtpExpiredError } from "../dist/index.js";
import { Msgsvc } from "./msgsvc.mjs";

let msgsvc;
let client;

before(async () => {
  msgsvc = await Msgsvc.start();
  client = new Client(msgsvc.options);
});

after(() => msgsvc.stop());

// The code under test --------------------------------------------------------------------------------------

/** Signs somebody in; `show` gets the link to open. */
async function signIn(show) {
  const session = await client.auth.sessions.create({ state: "browser-1" });
  show(session.links.messenger_a);
  const { status, code } = await client.auth.sessions.wait(session.session_id);
  return status === "confirmed" ? client.auth.verify({ code }) : null;
}

/** A shop that receives who signed in. */
async function shop(context, secretOf) {
  const signedIn = [];
  const server = createServer(async (request, response) => {
    const delivery = await openWebhook(request.headers, new Uint8Array(await buffer(request)), secretOf());
    if (delivery.event === "auth.completed") signedIn.push(delivery.data.first_name);
    response.writeHead(204).end();
    server.emit("delivery", delivery);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  context.after(() => server.close().closeAllConnections());
  return { server, signedIn, url: `http://127.0.0.1:${server.address().port}/hooks` };
}

// Its tests ------------------------------------------------------------------------------------------------

test("who presses Yes is signed in, and the shop receives it", async (context) => {
  let secret;
  const { server, signedIn, url } = await shop(context, () => secret);
  ({ secret } = await client.webhooks.create({ url, events: ["auth.completed"] }));
  const received = once(server, "delivery");
  const ann = await msgsvc.person("Ann");

  const person = await signIn(async (link) => {
    await ann.open(link);
    await ann.press("Yes");
  });

  assert.equal(person.first_name, "Ann");
  assert.equal(person.state, "browser-1");
  assert.equal((await received)[0].data.subscriber_id, person.subscriber_id);
  assert.deepEqual(signedIn, ["Ann"]);
});

test("who presses Cancel is not signed in", async () => {
  const ben = await msgsvc.person("Ben");

  const person = await signIn(async (link) => {
    await ben.open(link);
    await ben.press("Cancel");
  });

  assert.equal(person, null);
});

test("a session that nobody opens expires", async () => {
  let opened;
  const shown = new Promise((resolve) => {
    opened = resolve;
  });
  const signing = signIn(opened);
  await shown;

  await msgsvc.advance(11 * 60);

  assert.equal(await signing, null);
});

/** Somebody who subscribed by a link. */
async function subscribed(name, externalId) {
  const person = await msgsvc.person(name);
  const { links } = await client.subscribers.createLink({ external_id: externalId });
  await person.open(links.messenger_a);
  return person;
}

test("a code is worth nothing after its time", async () => {
  const cleo = await subscribed("Cleo", "cleo-1");
  const { otp_id } = await client.otp.send({ external_id: "cleo-1", ttl_minutes: 5 });
  await msgsvc.advance(6 * 60);
  const code = /\b\d{6}\b/.exec((await cleo.texts()).at(-1))[0];

  await assert.rejects(client.otp.verify({ otp_id, code }), OtpExpiredError);
});

test("a message is sent once, and its event comes by the feed", async () => {
  const dora = await subscribed("Dora", "dora-1");
  const store = new MemoryCursorStore();
  const events = client.events.follow({ store, fromBeginning: true, pollIntervalMs: 50 });
  const message = { external_id: "dora-1", text: "Your order is on its way." };
  const sent = await client.messages.send(message, { idempotencyKey: "order-4711" });
  const again = await client.messages.send(message, { idempotencyKey: "order-4711" });

  assert.deepEqual(again, sent);
  for await (const { event, data } of events) {
    if (event === "delivery.success" && data.message_id === sent.message_id) break;
  }
  assert.deepEqual((await dora.texts()).filter((text) => text === message.text), [message.text]);
});

test("lists are read page by page", async () => {
  for (const name of ["one", "two", "three"]) await client.tags.create({ name });

  const names = [];
  for await (const tag of client.tags.list({ limit: 1 })) names.push(tag.name);

  assert.deepEqual(names.sort(), ["one", "three", "two"]);
});

test("a file that was uploaded is the file that comes back", async () => {
  const bytes = crypto.getRandomValues(new Uint8Array(50_000));
  const { file_id, filename } = await client.files.upload(bytes, {}, { filename: "numbers.bin" });

  const download = await client.files.download(file_id);

  assert.equal(filename, "numbers.bin");
  assert.deepEqual(await download.bytes(), bytes);
});

test("what is not there is a NotFoundError", async () => {
  await assert.rejects(client.messages.get("msg_none"), (error) => error instanceof NotFoundError && error.status === 404);
});
