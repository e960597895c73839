import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate, setTimeout } from "node:timers/promises";
import { ApiError, ConnectionError, InvalidResponseError, NotFoundError, RateLimitProjectError, TimeoutError } from "../dist/index.js";
import { clientOf, json, refusal, silence } from "./support.mjs";

const MESSAGE = { external_id: "ann-1", text: "Hello" };
const QUEUED = { message_id: "msg_1", status: "queued" };
const broken = () => new TypeError("fetch failed");

test("a POST has a random idempotency key, the same in its retries", async () => {
  const accepted = () => json(QUEUED, { status: 202 });
  const { client, service } = clientOf([broken(), refusal(503, "unavailable"), accepted(), accepted()]);

  assert.deepEqual(await client.messages.send(MESSAGE), QUEUED);
  await client.messages.send(MESSAGE);

  const keys = service.requests.map(({ headers }) => headers.get("Idempotency-Key"));
  assert.match(keys[0], /^[0-9a-f]{32}$/);
  assert.deepEqual(keys.slice(0, 3), [keys[0], keys[0], keys[0]]);
  assert.notEqual(keys[3], keys[0]);
});

test("an idempotency key of one's own is sent, a malformed one is refused", async () => {
  const { client, service } = clientOf([json(QUEUED, { status: 202 })]);

  await client.messages.send(MESSAGE, { idempotencyKey: "order-4711" });
  const malformed = client.messages.send(MESSAGE, { idempotencyKey: "order 4711" });

  await assert.rejects(malformed, TypeError);
  assert.equal(service.requests.length, 1);
  assert.equal(service.requests[0].headers.get("Idempotency-Key"), "order-4711");
});

for (const [method, call] of [
  ["GET", (client) => client.messages.get("msg_1")],
  ["PUT", (client) => client.subscribers.addTag("sub_1", "vip")],
  ["PATCH", (client) => client.subscribers.update("sub_1", { lang: "en" })],
  ["DELETE", (client) => client.tags.delete("vip")],
]) {
  test(`${method} is repeated after a broken connection, without a key`, async () => {
    const { client, service } = clientOf([broken(), json({})]);

    await call(client);

    assert.deepEqual(service.requests.map((request) => request.method), [method, method]);
    assert.equal(service.requests[1].headers.get("Idempotency-Key"), null);
  });
}

test("waits double up to eight seconds, of which half or more is waited", async () => {
  const failures = Array.from({ length: 7 }, () => refusal(500, "internal_error"));
  const { client, clock } = clientOf([...failures, json({})], { maxAttempts: 8 });
  clock.chance = 0.5;

  await client.project.get();

  assert.deepEqual(clock.waits, [375, 750, 1500, 3000, 6000, 6000, 6000]);
});

for (const [chance, least, most] of [[0, 11_750, 11_750], [0.999, 23_000, 23_500]]) {
  test(`a call outlasts a restart of ten seconds by default, whatever chance draws (${chance})`, async () => {
    const { client, service, clock } = clientOf(Array.from({ length: 7 }, broken));
    clock.chance = chance;

    await assert.rejects(client.messages.send(MESSAGE), ConnectionError);

    assert.equal(service.requests.length, 7);
    assert.ok(clock.time >= least && clock.time <= most, String(clock.time));
  });
}

test("Retry-After is waited for, with jitter on top", async () => {
  const limited = refusal(429, "rate_limit_project", { headers: { "Retry-After": "7" } });
  const { client, clock } = clientOf([limited, json({})]);
  clock.chance = 0.5;

  await client.project.get();

  assert.deepEqual(clock.waits, [7250]);
});

test("a Retry-After beyond the deadline is told at once", async () => {
  const limited = refusal(429, "rate_limit_project", { headers: { "Retry-After": "3600" } });
  const { client, clock } = clientOf([limited]);

  await assert.rejects(client.auth.sessions.create(), (error) => {
    assert.ok(error instanceof RateLimitProjectError);
    assert.equal(error.retryAfterS, 3600);
    return true;
  });
  assert.deepEqual(clock.waits, []);
});

test("what is not retryable is asked once", async () => {
  const { client, service } = clientOf([refusal(404, "not_found")]);

  await assert.rejects(client.messages.get("msg_1"), { code: "not_found" });

  assert.equal(service.requests.length, 1);
});

test("attempts are counted, for the client and for a call", async () => {
  const { client, service } = clientOf([broken(), broken(), broken()], { maxAttempts: 2 });

  await assert.rejects(client.project.get(), ConnectionError);
  await assert.rejects(client.project.get({ maxAttempts: 1 }), ConnectionError);

  assert.equal(service.requests.length, 3);
});

test("no attempt starts after the deadline", async () => {
  const failures = Array.from({ length: 4 }, () => refusal(500, "internal_error"));
  const { client, service, clock } = clientOf(failures);
  clock.chance = 1;

  await assert.rejects(client.project.get({ deadlineMs: 1_501 }), { code: "internal_error" });

  assert.equal(service.requests.length, 3);
});

test("an attempt without an answer ends after its time, and is repeated", async () => {
  const { client, service } = clientOf([silence, silence]);

  const call = client.project.get({ timeoutMs: 5, maxAttempts: 2 });

  await assert.rejects(call, (error) => error instanceof TimeoutError && /within 5 ms \(GET \/v1\/project\)/.test(error.message));
  assert.equal(service.requests.length, 2);
});

test("a failure says how many attempts were made", async () => {
  const { client } = clientOf([broken(), broken(), broken(), new Response("<h1>Welcome</h1>")]);

  const error = await client.project.get({ maxAttempts: 2 }).catch((caught) => caught);
  const strange = await client.project.get().catch((caught) => caught);

  assert.equal(error.attempts, 2);
  assert.match(error.message, /\(GET \/v1\/project\) after 2 attempts$/);
  assert.deepEqual([strange.constructor, strange.attempts], [InvalidResponseError, 2]);
});

test("Infinity is no limit, and what is no time is refused", async () => {
  const late = async () => {
    await setTimeout(20);
    return json({ name: "Shop" });
  };
  const limits = { timeoutMs: Infinity, deadlineMs: Infinity };
  const { client, service } = clientOf([late, late], limits);

  assert.deepEqual(await client.project.get(), { name: "Shop" });
  assert.deepEqual(await client.project.get({ timeoutMs: 2 ** 40 }), { name: "Shop" });

  for (const name of ["timeoutMs", "deadlineMs"]) {
    for (const value of [0, -1, NaN]) {
      await assert.rejects(client.project.get({ [name]: value }), { name: "RangeError", message: new RegExp(name) });
      assert.throws(() => clientOf([], { [name]: value }), RangeError);
    }
  }
  assert.equal(service.requests.length, 2);
});

test("a body that breaks off counts as a broken connection", async () => {
  const body = new ReadableStream({
    pull(controller) {
      controller.error(broken());
    },
  });
  const { client } = clientOf([new Response(body), json({ name: "Shop" })]);

  assert.deepEqual(await client.project.get(), { name: "Shop" });
});

test("abort ends the request with the caller's reason, and no retry follows", async () => {
  const controller = new AbortController();
  const { client, service } = clientOf([silence]);
  const call = client.project.get({ signal: controller.signal });
  await setImmediate();

  controller.abort(new Error("the person left"));

  await assert.rejects(call, /^Error: the person left$/);
  assert.equal(service.requests.length, 1);
});

test("abort ends a wait between attempts", async () => {
  const controller = new AbortController();
  const { client } = clientOf([broken()], {
    clock: undefined,
    onRetry: () => controller.abort(new Error("the person left")),
  });

  await assert.rejects(client.project.get({ signal: controller.signal }), /^Error: the person left$/);
});

test("a proxy's page is retried by its status, and has that for a code", async () => {
  const page = (status) => new Response("<h1>Bad gateway</h1>", { status });
  const { client, service } = clientOf([page(502), page(403)]);

  const error = await client.project.get().catch((caught) => caught);

  assert.equal(error.constructor, ApiError);
  assert.deepEqual([error.code, error.status, error.retryable, error.attempts], ["http_403", 403, false, 2]);
  assert.equal(service.requests.length, 2);
});

test("a success that is no JSON is no answer of the API", async () => {
  const { client, service } = clientOf([new Response("<h1>Welcome</h1>")]);

  await assert.rejects(client.project.get(), InvalidResponseError);

  assert.equal(service.requests.length, 1);
});

test("a redirect is not followed", async () => {
  const { client, service } = clientOf([new Response(null, { status: 301, headers: { Location: "https://elsewhere.test/" } })]);

  await assert.rejects(client.project.get(), { code: "http_301", message: /a redirect/ });

  assert.equal(service.requests[0].redirect, "manual");
});

test("a DELETE that finds nothing after an attempt without an answer has succeeded", async () => {
  const { client } = clientOf([broken(), refusal(404, "not_found"), refusal(503, "unavailable"), refusal(404, "not_found")]);

  await client.tags.delete("vip");

  // An answer of the service says that nothing was deleted.
  await assert.rejects(client.tags.delete("vip"), NotFoundError);
});

test("another refusal says that an earlier attempt may have had the effect", async () => {
  const { client } = clientOf([broken(), refusal(409, "conflict")]);

  await assert.rejects(client.tags.rename("vip", { name: "gold" }), { earlierAttemptUnanswered: true, attempts: 2 });
});

test("answers and retries are reported", async () => {
  const seen = [];
  const headers = {
    "X-Request-Id": "req_1",
    "X-RateLimit-Limit": "300",
    "X-RateLimit-Remaining": "299",
    "X-RateLimit-Reset": "1795167000",
    "Idempotent-Replayed": "true",
  };
  const { client } = clientOf([refusal(503, "unavailable"), json(QUEUED, { status: 202, headers })], {
    onResponse: ({ status, attempt, replayed, rateLimit, requestId }) =>
      seen.push({ status, attempt, replayed, remaining: rateLimit?.remaining ?? null, requestId }),
    onRetry: ({ error, attempt, delayMs }) => seen.push({ code: error.code, attempt, delayMs }),
  });

  await client.messages.send(MESSAGE);

  assert.deepEqual(seen, [
    { status: 503, attempt: 1, replayed: false, remaining: null, requestId: null },
    { code: "unavailable", attempt: 1, delayMs: 250 },
    { status: 202, attempt: 2, replayed: true, remaining: 299, requestId: "req_1" },
  ]);
});
