import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { clientOf, json, refusal } from "./support.mjs";

const pending = { session_id: "ses_1", status: "pending", state: "xyz", expires_in: 500 };
const confirmed = { ...pending, status: "confirmed", code: "a-code", expires_in: 300 };

test("a session is waited for by long polls, over errors that pass", async () => {
  const { client, service, clock } = clientOf([
    () => {
      clock.time += 25_000;
      return json(pending);
    },
    refusal(503, "unavailable"),
    json(confirmed),
  ]);

  const answer = await client.auth.sessions.wait("ses_1");

  assert.deepEqual(answer, confirmed);
  assert.ok(!inspect(answer).includes("a-code"));
  assert.deepEqual(
    service.requests.map(({ url }) => url.pathname + url.search),
    Array.from({ length: 3 }, () => "/v1/auth/session/ses_1/status?wait=25"),
  );
});

test("a session is held for no longer than the limits of a call allow", async (t) => {
  const timers = t.mock.method(globalThis, "setTimeout");
  const { client, service } = clientOf([json(confirmed), json(confirmed)], { deadlineMs: 8_000 });

  await client.auth.sessions.wait("ses_1");
  await client.auth.sessions.wait("ses_1", { deadlineMs: 3_000, timeoutMs: 50 });

  assert.deepEqual(service.requests.map(({ url }) => url.search), ["?wait=4", "?wait=1"]);
  // What an attempt may take is counted from the end of what the service may hold it for.
  assert.deepEqual(timers.mock.calls.map((call) => call.arguments[1]), [8_000, 1_050]);
});

test("a service that holds no request is asked every two seconds", async () => {
  const { client, clock } = clientOf([json(pending), json(pending), json({ ...pending, status: "denied" })]);

  const answer = await client.auth.sessions.wait("ses_1");

  assert.equal(answer.status, "denied");
  assert.deepEqual(clock.waits, [2_000, 2_000]);
});

test("a session that stays open is given back as it is after the longest wait", async () => {
  const { client, clock, service } = clientOf([json(pending), json(pending), json(pending)]);

  const answer = await client.auth.sessions.wait("ses_1", { maxWaitMs: 3_500 });

  assert.equal(answer.status, "pending");
  assert.deepEqual(clock.waits, [2_000, 1_500]);
  assert.deepEqual(service.requests.map(({ url }) => url.search), ["?wait=3", "?wait=1", "?wait=0"]);
});
