import assert from "node:assert/strict";
import { test } from "node:test";
import { clientOf, json, refusal } from "./support.mjs";

const page = (ids, next_cursor) => json({ data: ids.map((subscriber_id) => ({ subscriber_id })), next_cursor });

test("a list is read over all its pages, with the same filters", async () => {
  const { client, service } = clientOf([page(["sub_3", "sub_2"], "c1"), page([], "c2"), page(["sub_1"], null)]);

  const seen = [];
  for await (const { subscriber_id } of client.subscribers.list({ tag: "vip", limit: 2, lang: undefined })) {
    seen.push(subscriber_id);
  }

  assert.deepEqual(seen, ["sub_3", "sub_2", "sub_1"]);
  assert.deepEqual(
    service.requests.map(({ url }) => url.search),
    ["?tag=vip&limit=2", "?tag=vip&limit=2&cursor=c1", "?tag=vip&limit=2&cursor=c2"],
  );
});

test("pages are read only as far as the loop goes", async () => {
  const { client, service } = clientOf([page(["sub_3", "sub_2"], "c1")]);

  for await (const { subscriber_id } of client.subscribers.list()) {
    if (subscriber_id === "sub_2") break;
  }

  assert.equal(service.requests.length, 1);
});

test("pages can be read one by one, from a cursor that was kept", async () => {
  const { client, service } = clientOf([page(["sub_2"], "c2"), page(["sub_1"], null), page(["sub_2"], "c2")]);

  const pages = [];
  for await (const each of client.subscribers.list({ cursor: "c1" }).pages()) pages.push(each.next_cursor);
  const first = await client.subscribers.list({ cursor: "c1" }).page();

  assert.deepEqual(pages, ["c2", null]);
  assert.equal(first.data[0].subscriber_id, "sub_2");
  assert.deepEqual(
    service.requests.map(({ url }) => url.searchParams.get("cursor")),
    ["c1", "c2", "c1"],
  );
});

test("a page that fails is retried by itself", async () => {
  const { client } = clientOf([page(["sub_2"], "c1"), refusal(503, "unavailable"), page(["sub_1"], null)]);

  const seen = [];
  for await (const { subscriber_id } of client.subscribers.list()) seen.push(subscriber_id);

  assert.deepEqual(seen, ["sub_2", "sub_1"]);
});
