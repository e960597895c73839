import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryCursorStore } from "../dist/index.js";
import { clientOf, json, refusal } from "./support.mjs";

/** When event 0 occurred. */
const START = Date.parse("2026-03-01T09:00:00.000Z");

/** A service that keeps a feed, as `GET /v1/events` shows it. */
class Feed {
  ids = [];
  failures = [];
  /** When an event occurred, by its number. */
  secondOf = (id) => Number(id.slice(4));

  answer = ({ url }) => {
    const failure = this.failures.shift();
    if (failure) return failure;
    const after = url.searchParams.get("after_event_id");
    const limit = Number(url.searchParams.get("limit"));
    const sorted = this.ids.toSorted();
    const cursor = url.searchParams.get("cursor");
    let found = after === null ? sorted.toReversed() : sorted.filter((id) => id > after);
    if (cursor !== null) found = found.filter((id) => id < cursor);
    const data = found.slice(0, limit).map((event_id) => {
      const occurred_at = new Date(START + this.secondOf(event_id) * 1000).toISOString();
      return { event_id, event: "event.tracked", data: { occurred_at } };
    });
    return json({ data, next_cursor: found.length > limit ? data.at(-1).event_id : null });
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

test("what was under way when following began is not lost", async () => {
  const { client, feed, clock } = following();
  feed.ids = [...ids(0, 199), id(230)];
  clock.sleep = async () => {
    feed.ids.push(id(225), id(231));
  };

  assert.deepEqual(await take(client.events.follow(), 2), [id(225), id(231)]);
});

test("following that begins in a rush looks back a minute over several pages", async () => {
  const { client, feed, clock } = following();
  feed.ids = ids(0, 999).filter((each) => Number(each.slice(4)) % 2 === 0);
  feed.secondOf = (each) => Math.floor(Number(each.slice(4)) / 10);
  clock.sleep = async () => {
    feed.ids.push(id(401));
  };

  assert.deepEqual(await take(client.events.follow(), 1), [id(401)]);
});

test("a cursor stays small, and forgets what is settled", async () => {
  const store = new MemoryCursorStore();
  const { client, feed } = following();
  feed.ids = ids(0, 149).map((each) => id(Number(each.slice(4)) * 20));

  for await (const _ of client.events.follow({ store, fromBeginning: true, untilIdle: true }));

  assert.deepEqual(JSON.parse(store.cursor), {
    after: id(2900),
    newest_ms: START + 2_980_000,
    seen: [id(2920), id(2940), id(2960), id(2980)],
  });
});

test("a cursor has no more ids than its cap", async () => {
  const store = new MemoryCursorStore();
  const { client, feed } = following();
  feed.ids = ids(0, 1499);
  feed.secondOf = () => 0;

  for await (const _ of client.events.follow({ store, fromBeginning: true, untilIdle: true }));

  const { after, seen } = JSON.parse(store.cursor);
  assert.deepEqual([after, seen.length], [id(499), 1000]);
});

test("a cursor is saved once a second, and when the loop is left", async () => {
  const saved = [];
  const store = { load: () => null, save: (cursor) => void saved.push(JSON.parse(cursor).seen.at(-1)) };
  const { client, feed, clock } = following();
  feed.ids = ids(1, 7);

  for await (const event of client.events.follow({ store, fromBeginning: true })) {
    clock.time += 400;
    if (event.event_id === id(6)) break;
  }

  assert.deepEqual(saved, [undefined, id(3), id(5)]);
});

test("a feed without news for a minute is asked for what follows alone", async () => {
  const { client, feed, service, clock } = following();
  feed.ids = ids(1, 50);
  const events = client.events.follow({ fromBeginning: true });
  await take(events, 50);
  clock.sleep = async (ms) => {
    clock.time += ms;
    if (clock.time > 100_000) feed.ids.push(id(51));
  };

  assert.deepEqual(await take(events, 1), [id(51)]);
  const asked = service.requests.map(({ url }) => url.searchParams.get("after_event_id"));
  assert.deepEqual([asked[1], asked.at(-1)], ["", id(50)]);
});

for (const cursor of ["", "{}", "[]", "null", "evt_1,evt_2"]) {
  test(`a broken cursor is told: ${JSON.stringify(cursor)}`, async () => {
    const { client } = following();
    const events = client.events.follow({ store: { load: () => cursor, save: () => {} } });

    await assert.rejects(events.next(), { name: "TypeError", message: /holds no cursor; mend it/ });
  });
}

test("while the service is away it keeps trying", async () => {
  const retries = [];
  const { client, feed } = following({ onRetry: ({ delayMs }) => retries.push(delayMs) });
  const limited = refusal(429, "rate_limit_project", { headers: { "Retry-After": "40" } });
  feed.failures = [...Array.from({ length: 6 }, () => new TypeError("fetch failed")), limited];
  feed.ids = [id(1)];
  const events = client.events.follow({ fromBeginning: true });

  assert.deepEqual(await take(events, 1), [id(1)]);
  assert.deepEqual(retries, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 40_000]);
});

for (const [status, code] of [[401, "invalid_api_key"], [403, "forbidden"], [404, "not_found"]]) {
  test(`what does not heal ends it: ${status}`, async () => {
    const { client, feed } = following();
    feed.failures = [refusal(status, code)];

    await assert.rejects(client.events.follow().next(), { code });
  });
}

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
