// Verifies webhooks of msgsvc. One file without dependencies, for Node.js 16 and later: copy it.

import { createHmac, timingSafeEqual } from "node:crypto";

/** A request that msgsvc did not sign: answer it with 400. */
export class InvalidWebhook extends Error {}

/**
 * Throws InvalidWebhook unless the header signs the raw body with one of the secrets.
 *
 * Old timestamps are fine: a retry may come a day late. Remember X-Service-Delivery-Id instead.
 *
 * @param {Object<string, string>} headers such as `request.headers`
 * @param {Buffer} body as it came, neither parsed nor decoded
 * @param {string | string[]} secrets several while one is being replaced
 */
export function verify(headers, body, secrets, header = "X-Service-Signature") {
  const parts = valueOf(headers, header)
    .split(",")
    .map((part) => pair(part.replace(/^[ \t]+|[ \t]+$/g, ""), "="));
  const times = parts.filter(([name]) => name === "t").map(([, value]) => value);
  if (times.length !== 1 || !/^[0-9]+$/.test(times[0])) {
    throw new InvalidWebhook(`${header} is malformed`);
  }
  const sign = (secret) => hmac(secret, `${times[0]}.`, body).digest("hex");
  match(signatures(parts), all(secrets).map(sign));
}

/** The same by the headers of Standard Webhooks, whose signature spans the delivery's id too. */
export function verifyStandard(headers, body, secrets) {
  const [id, time] = ["webhook-id", "webhook-timestamp"].map((name) => valueOf(headers, name));
  if (!/^[0-9]+$/.test(time)) throw new InvalidWebhook("webhook-timestamp is malformed");
  const parts = valueOf(headers, "webhook-signature").split(" ").map((part) => pair(part, ","));
  const sign = (secret) => {
    return hmac(keyOf(secret), `${id}.${time}.`, body).digest("base64");
  };
  match(signatures(parts), all(secrets).map(sign));
}

function keyOf(secret) {
  const text = /^whsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/.exec(secret);
  const key = Buffer.from(text?.[1] ?? "", "base64");
  // A key that was cut off, or decodes to nothing, is known to everybody.
  if (key.length < 24) {
    throw new TypeError("a secret is malformed: it is whsec_ and the base64 of 24 bytes or more");
  }
  return key;
}

function hmac(key, before, body) {
  if (typeof body === "string") throw new TypeError("give the raw body as a Buffer");
  return createHmac("sha256", key).update(before).update(body);
}

function valueOf(headers, wanted) {
  const found = Object.entries(headers).find(([name]) => name.toLowerCase() === wanted.toLowerCase());
  if (!found?.[1]) throw new InvalidWebhook(`the header ${wanted} is missing`);
  return String(found[1]);
}

function pair(text, separator) {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

const signatures = (parts) => parts.filter(([name]) => name === "v1").map(([, value]) => value);

function all(secrets) {
  const found = [secrets].flat();
  if (!found.every(Boolean)) throw new TypeError("a secret is empty: is its variable set?");
  found.forEach(keyOf);
  return found;
}

function match(given, expected) {
  const equal = (one, other) => {
    const [left, right] = [Buffer.from(one), Buffer.from(other)];
    return left.length === right.length && timingSafeEqual(left, right);
  };
  // Every pair is compared, in constant time: how long it takes tells nothing.
  const matches = given.flatMap((one) => expected.map((other) => equal(one, other)));
  if (!matches.includes(true)) throw new InvalidWebhook("the signature does not match");
}
