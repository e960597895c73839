import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { InvalidWebhookError, openWebhook, verifyStandardWebhook, verifyWebhook } from "../dist/index.js";

const VECTORS = new URL("../../../../tests/vectors/webhooks.json", import.meta.url);
const vectors = JSON.parse(readFileSync(VECTORS, "utf8"));

const SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
const OLD_SECRET = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY=";
const BODY = JSON.stringify({ event: "auth.completed", data: { state: "xyz" } });

for (const [scheme, verify] of [
  ["signature", verifyWebhook],
  ["standard", verifyStandardWebhook],
]) {
  for (const { about, valid, headers, body, secrets } of vectors[scheme]) {
    test(`${scheme}: ${about} is ${valid ? "accepted" : "refused"}`, async () => {
      const bytes = new Uint8Array(Buffer.from(body, "base64"));

      const verified = verify(headers, bytes, secrets);

      if (valid) assert.ok((await verified) > 0);
      else await assert.rejects(verified, (error) => error instanceof InvalidWebhookError || error instanceof TypeError);
    });
  }
}

/** Headers as the service sends them, signed with each of the secrets. */
function delivery(body, ...secrets) {
  const hex = secrets.map((secret) => `v1=${createHmac("sha256", secret).update(`1795167000.${body}`).digest("hex")}`);
  const base64 = secrets.map((secret) => {
    const key = Buffer.from(secret.replace("whsec_", ""), "base64");
    return `v1,${createHmac("sha256", key).update(`whd_1.1795167000.${body}`).digest("base64")}`;
  });
  return {
    own: { "x-service-signature": `t=1795167000,${hex.join(",")}`, "x-service-delivery-id": "whd_1" },
    standard: { "webhook-id": "whd_1", "webhook-timestamp": "1795167000", "webhook-signature": base64.join(" ") },
  };
}

const opened = { deliveryId: "whd_1", timestamp: 1795167000, event: "auth.completed", data: { state: "xyz" } };

test("a delivery is opened by either scheme, or both", async () => {
  const { own, standard } = delivery(BODY, SECRET);

  for (const headers of [own, standard, new Headers({ ...own, ...standard })]) {
    assert.deepEqual(await openWebhook(headers, BODY, SECRET), opened);
  }
});

test("a delivery is opened with either of two secrets, on both sides", async () => {
  const { own } = delivery(BODY, SECRET, OLD_SECRET);

  assert.deepEqual(await openWebhook(own, BODY, OLD_SECRET), opened);
  assert.deepEqual(await openWebhook(delivery(BODY, SECRET).own, BODY, [OLD_SECRET, SECRET]), opened);
  await assert.rejects(openWebhook(delivery(BODY, SECRET).own, BODY, OLD_SECRET), InvalidWebhookError);
});

test("a delivery that changed the id which is signed is refused", async () => {
  const { own, standard } = delivery(BODY, SECRET);

  await assert.rejects(openWebhook({ ...own, ...standard, "webhook-id": "whd_2" }, BODY, SECRET), InvalidWebhookError);
});

test("the prefix of the headers is a setting", async () => {
  const { own } = delivery(BODY, SECRET);
  const headers = { "Acme-Signature": own["x-service-signature"], "Acme-Delivery-Id": "whd_1" };

  assert.deepEqual(await openWebhook(headers, BODY, SECRET, { prefix: "Acme" }), opened);
});

test("what is signed and is no event is refused", async () => {
  for (const body of ["[]", "null", "{}", '{"event":"x","data":1}', "no JSON"]) {
    await assert.rejects(openWebhook(delivery(body, SECRET).own, body, SECRET), /the body is not \{event, data\}/);
  }
});

test("an error shows neither the secret nor the signature that was expected", async () => {
  const error = await openWebhook(delivery(BODY, OLD_SECRET).own, BODY, SECRET).catch((caught) => caught);
  const malformed = await openWebhook({}, BODY, SECRET.slice(0, -4)).catch((caught) => caught);

  assert.equal(error.message, "the signature does not match");
  assert.ok(!String(malformed).includes(SECRET.slice(0, 12)));
});
