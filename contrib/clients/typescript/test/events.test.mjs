import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryCursorStore } from "../dist/index.js";
import { clientOf, json, refusal } from "./support.mjs";

/** A service that keeps a feed, as `GET /v1/events` shows it. */
class Feed {
  ids = [];
  failures = [];

  answer = ({ url }) => {
    const failure = this.failures.shift();
    if (failure) return failure;
    const after = url.searchParams.get("after_event_id");
    const limit = Number(url.searchParams.get("limit"));
    const sorted = this.ids.toSorted();
    const found = after === null ? sorted.toReversed() : sorted.filter((id) => id > after);
    const data = found.slice(0, limit).map((event_id) => ({ event_id, event: "event.tracked", data: {} }));
    return json({ data, next_cursor: found.length > limit ? "more" : null });
  };
}

function following(options = {}) {
  const feed = new Feed();
  const made = clientOf([], { maxAttempts: 1, ...options });
  made.service.answers = { shift: () => feed.answer };
  return { ...made, feed };
}

/** The ids of the next events. */
async function take(events, count) {
  const ids = [];
  while (ids.length < count) ids.push((await events.next()).value.event_id);
  return ids;
}

const id = (number) => `evt_${String(number).padStart(4, "0")}`;
const ids = (from, to) => Array.from({ length: to - from + 1 }, (_, index) => id(from + index));

test("events come from the start of following on, oldest first, and each once", async () => {
  const { client, feed, clock } = following();
  feed.ids = ids(1, 3);
  const events = client.events.follow();
  const first = events.next();
  clock.sleep = async (ms) => {
    clock.time += ms;
    if (!feed.ids.includes(id(4))) feed.ids.push(id(4), id(5));
    else if (!feed.ids.includes(id(6))) feed.ids.push(id(6));
  };

  assert.deepEqual([(await first).value.event_id, ...(await take(events, 2))], ids(4, 6));
});

test("from the beginning, all pages are read", async () => {
  const { client, feed } = following();
  feed.ids = ids(1, 250);

  const seen = await take(client.events.follow({ fromBeginning: true }), 250);

  assert.deepEqual(seen, ids(1, 250));
});

test("an event that commits late, below one that was seen, is not lost", async () => {
  const { client, feed } = following();
  feed.ids = [id(1), id(3)];
  const events = client.events.follow({ fromBeginning: true });
  const before = await take(events, 2);

  feed.ids.push(id(2), id(4));

  assert.deepEqual([...before, ...(await take(events, 2))], [id(1), id(3), id(2), id(4)]);
});

test("the cursor is saved after an event was handled, and read on from in another process", async () => {
  const store = new MemoryCursorStore();
  const { client, feed } = following();
  feed.ids = ids(1, 4);
  const events = client.events.follow({ store, fromBeginning: true });
  await take(events, 3);
  // The third one was not handled: the loop was left within it.
  await events.return();

  const seen = await take(client.events.follow({ store: { load: () => store.cursor, save: () => {} } }), 2);

  assert.deepEqual(seen, ids(3, 4));
});

test("where following starts is saved at once, so that nothing after it is lost", async () => {
  const store = new MemoryCursorStore();
  const { client, feed, clock } = following();
  feed.ids = [id(1)];
  clock.sleep = async () => {
    throw new Error("stopped");
  };
  await assert.rejects(client.events.follow({ store }).next(), /stopped/);
  feed.ids.push(id(2));

  assert.deepEqual(await take(client.events.follow({ store }), 1), [id(2)]);
});

test("a cursor stays small, and forgets what is settled", async () => {
  const store = new MemoryCursorStore();
  const { client, feed, clock } = following();
  feed.ids = ids(1, 500);
  const events = client.events.follow({ store, fromBeginning: true });
  await take(events, 500);
  assert.equal(store.cursor.split(",").length, 201);

  clock.time += 60_000;
  feed.ids.push(id(501), id(502));
  await take(events, 2);

  assert.equal(store.cursor, [id(499), id(500), id(501)].join(","));
});

test("while the service is away it keeps trying; another refusal ends it", async () => {
  const retries = [];
  const { client, feed } = following({ onRetry: ({ delayMs }) => retries.push(delayMs) });
  const limited = refusal(429, "rate_limit_project", { headers: { "Retry-After": "40" } });
  feed.failures = [...Array.from({ length: 6 }, () => new TypeError("fetch failed")), limited];
  feed.ids = [id(1)];
  const events = client.events.follow({ fromBeginning: true });

  assert.deepEqual(await take(events, 1), [id(1)]);
  assert.deepEqual(retries, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 40_000]);
  feed.failures = [refusal(403, "forbidden")];
  await assert.rejects(events.next(), { code: "forbidden" });
});

test("until it is idle, one name alone", async () => {
  const { client, feed, service, clock } = following();
  feed.ids = ids(1, 2);

  const seen = [];
  for await (const { event_id } of client.events.follow({ fromBeginning: true, untilIdle: true, event: "event.tracked" })) {
    seen.push(event_id);
  }

  assert.deepEqual(seen, ids(1, 2));
  assert.deepEqual(clock.waits, []);
  assert.equal(service.requests[0].url.search, "?after_event_id=&limit=100&event=event.tracked");
});

test("abort ends it", async () => {
  const controller = new AbortController();
  const { client } = following();
  const events = client.events.follow({ signal: controller.signal });

  controller.abort(new Error("stopped"));

  await assert.rejects(events.next(), /^Error: stopped$/);
});
