import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { ApiError, Client, ConnectionError, MsgsvcError, NotFoundError } from "../dist/index.js";
import { API_KEY, clientOf, json, refusal } from "./support.mjs";

const SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

test("each code has a class with all that the envelope says", async () => {
  const { client } = clientOf([refusal(404, "not_found", { headers: { "X-Request-Id": "req_1" } })]);

  const error = await client.messages.get("msg_1").catch((caught) => caught);

  assert.ok(error instanceof NotFoundError && error instanceof ApiError && error instanceof MsgsvcError);
  assert.equal(error.name, "NotFoundError");
  assert.equal(error.message, "a refusal: not_found (404 not_found, GET /v1/messages/msg_1)");
  assert.deepEqual({ ...error }, {
    name: "NotFoundError",
    code: "not_found",
    status: 404,
    retryable: false,
    docsUrl: "https://msgsvc.test/docs/errors#not_found",
    retryAfterS: null,
    method: "GET",
    path: "/v1/messages/msg_1",
    requestId: "req_1",
    attempts: 1,
    earlierAttemptUnanswered: false,
  });
});

for (const code of ["newer_than_this_client", "constructor", "__proto__"]) {
  test(`the unknown code ${code} is an ApiError`, async () => {
    const { client } = clientOf([refusal(409, code)]);

    const error = await client.project.get().catch((caught) => caught);

    assert.equal(error.constructor, ApiError);
    assert.equal(error.code, code);
  });
}

test("neither errors nor the client show the key when they are printed", async () => {
  const failure = () => new TypeError("fetch failed", { cause: new Error("ECONNREFUSED") });
  const { client } = clientOf([failure(), refusal(401, "invalid_api_key")], { maxAttempts: 1 });

  const errors = [
    await client.project.get().catch((caught) => caught),
    await client.project.get().catch((caught) => caught),
  ];

  assert.ok(errors[0] instanceof ConnectionError);
  const printed = [client, ...errors].map((each) => inspect(each, { depth: 20, showHidden: true }) + JSON.stringify(each));
  for (const text of printed) assert.ok(!text.includes(API_KEY), text);
});

test("a refused key is not repeated in the error", () => {
  const make = () => new Client({ baseUrl: "https://msgsvc.test", apiKey: "msk_secret\n" });

  assert.throws(make, (error) => error instanceof TypeError && !error.message.includes("msk_"));
});

test("a key whose variable is not set is refused", () => {
  assert.throws(() => new Client({ baseUrl: "https://msgsvc.test", apiKey: undefined }), TypeError);
});

for (const baseUrl of ["msgsvc.example.com", "msgsvc.example.com:8000", "", undefined]) {
  test(`${baseUrl} is no address, and the error shows one`, () => {
    const message = "baseUrl must be like https://msgsvc.example.com";

    assert.throws(() => new Client({ baseUrl, apiKey: API_KEY }), { name: "TypeError", message });
  });
}

for (const baseUrl of ["ftp://msgsvc.test", "https://ann:secret@msgsvc.test", "https://msgsvc.test?key=secret"]) {
  test(`the address ${baseUrl} is refused`, () => {
    assert.throws(() => new Client({ baseUrl, apiKey: API_KEY }), (error) => !error.message.includes("secret"));
  });
}

test("a secret in an answer is there, and not printed", async () => {
  const webhook = { webhook_id: "whe_1", secret: SECRET };
  const { client } = clientOf([json(webhook, { status: 201 })]);

  const created = await client.webhooks.create({ url: "https://shop.test/hooks" });

  assert.equal(created.secret, SECRET);
  assert.deepEqual(created, webhook);
  assert.deepEqual(JSON.parse(JSON.stringify(created)), webhook);
  assert.equal(inspect(created), "{ webhook_id: 'whe_1', secret: '***' }");
});

test("the service may be mounted under a path, and what is not of a path is escaped", async () => {
  const { client, service } = clientOf([json({})], { baseUrl: "https://shop.test/notify/" });

  await client.tags.get("a/b ü");

  assert.equal(service.requests[0].url.href, "https://shop.test/notify/v1/tags/a%2Fb%20%C3%BC");
});

for (const id of ["", ".", ".."]) {
  test(`an id ${JSON.stringify(id)} that would lead to another endpoint is refused`, async () => {
    const { client, service } = clientOf([]);

    assert.throws(() => client.subscribers.delete(id), TypeError);

    assert.deepEqual(service.requests, []);
  });
}
