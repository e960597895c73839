import { InvalidWebhookError } from "./errors.js";
import type { EventName } from "./events.js";
import type { EventData } from "./generated/events.js";

/** `request.headers` of `fetch`, Node.js or Express. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** The raw body as it came: bytes, or a text that nobody has parsed. */
export type WebhookBody = Uint8Array<ArrayBuffer> | ArrayBuffer | string;

/** A delivery with a valid signature. `event` tells its `data` apart. */
export type WebhookDelivery = {
  [Name in EventName]: {
    /** The same in every attempt: store it, and skip what you have handled. */
    readonly deliveryId: string;
    /** When this attempt was signed, in Unix seconds. It may be old: a retry may come a day later. */
    readonly timestamp: number;
    readonly event: Name;
    readonly data: EventData[Name];
  };
}[EventName];

export interface WebhookOptions {
  /** The service's setting `webhooks.header_prefix`. */
  prefix?: string | undefined;
}

/** Bytes of a key at least (Standard Webhooks, "Signature scheme"). */
const LEAST_KEY_BYTES = 24;

const SECRET = /^whsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/;

const HMAC = { name: "HMAC", hash: "SHA-256" };

/**
 * Verifies a webhook and reads its event. Throws `InvalidWebhookError` unless the service has signed the raw body
 * with one of the secrets; `TypeError` for a secret that is none.
 *
 *     const delivery = await openWebhook(request.headers, await request.arrayBuffer(), secret);
 *
 * `secrets` is the webhook's secret, or several while one is being rotated. The headers of Standard Webhooks are
 * verified where they are there, as they sign the delivery's id too; else `X-Service-Signature`.
 */
export async function openWebhook(
  headers: WebhookHeaders,
  body: WebhookBody,
  secrets: string | readonly string[],
  { prefix = "X-Service" }: WebhookOptions = {},
): Promise<WebhookDelivery> {
  const standard = valueOf(headers, "webhook-signature") !== undefined;
  const timestamp = standard
    ? await verifyStandardWebhook(headers, body, secrets)
    : await verifyWebhook(headers, body, secrets, { prefix });
  const deliveryId = required(headers, standard ? "webhook-id" : `${prefix}-Delivery-Id`);
  return { deliveryId, timestamp, ...eventOf(bytesOf(body)) } as WebhookDelivery;
}

/**
 * Verifies `X-Service-Signature`, which signs the time and the body. Returns the time, in Unix seconds. Throws as
 * `openWebhook` does.
 */
export async function verifyWebhook(
  headers: WebhookHeaders,
  body: WebhookBody,
  secrets: string | readonly string[],
  { prefix = "X-Service" }: WebhookOptions = {},
): Promise<number> {
  const name = `${prefix}-Signature`;
  const parts = required(headers, name)
    .split(",")
    .map((part) => pair(part.replace(/^[ \t]+|[ \t]+$/g, ""), "="));
  const times = parts.filter(([key]) => key === "t").map(([, value]) => value);
  const [time] = times;
  if (time === undefined || times.length > 1 || !isNumber(time)) {
    throw new InvalidWebhookError(`${name} is malformed`);
  }
  // The whole secret is the key, as text.
  const keys = all(secrets).map((secret) => bytesOf(secret));
  await match(keys, bytesOf(`${time}.`, body), signatures(parts).map(fromHex));
  return Number(time);
}

/**
 * Verifies the headers of Standard Webhooks, which sign the delivery's id, the time and the body. Returns the time,
 * in Unix seconds. Throws as `openWebhook` does.
 */
export async function verifyStandardWebhook(
  headers: WebhookHeaders,
  body: WebhookBody,
  secrets: string | readonly string[],
): Promise<number> {
  const id = required(headers, "webhook-id");
  const time = required(headers, "webhook-timestamp");
  if (!isNumber(time)) throw new InvalidWebhookError("webhook-timestamp is malformed");
  const parts = required(headers, "webhook-signature").split(" ").map((part) => pair(part, ","));
  const keys = all(secrets).map(keyOf);
  await match(keys, bytesOf(`${id}.${time}.`, body), signatures(parts).map(fromBase64));
  return Number(time);
}

function eventOf(body: Uint8Array): { event: string; data: unknown } {
  try {
    const content = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    if (typeof content?.event === "string" && typeof content.data === "object" && content.data !== null) {
      return { event: content.event, data: content.data };
    }
  } catch {
    // Not JSON, or not UTF-8: the same to whoever reads the error.
  }
  throw new InvalidWebhookError("the body is not {event, data}");
}

function all(secrets: string | readonly string[]): readonly string[] {
  const found = typeof secrets === "string" ? [secrets] : secrets;
  if (found.length === 0 || !found.every(Boolean)) throw new TypeError("a secret is empty: is its variable set?");
  found.forEach(keyOf);
  return found;
}

/** The bytes after `whsec_`. What is cut off, or decodes to nothing, is a key that everybody has. */
function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  const key = fromBase64(SECRET.exec(secret)?.[1] ?? "");
  if (!key || key.length < LEAST_KEY_BYTES) {
    throw new TypeError(`a secret is malformed: it is whsec_ and the base64 of ${LEAST_KEY_BYTES} bytes or more`);
  }
  return key;
}

async function match(
  keys: readonly Uint8Array<ArrayBuffer>[],
  signed: Uint8Array<ArrayBuffer>,
  given: readonly (Uint8Array<ArrayBuffer> | undefined)[],
): Promise<void> {
  const imported = await Promise.all(
    keys.map((key) => crypto.subtle.importKey("raw", key, HMAC, false, ["verify"])),
  );
  // Every pair is compared, each in constant time by WebCrypto: how long it takes tells nothing.
  const matches = await Promise.all(
    imported.flatMap((key) =>
      given.map((one) => one !== undefined && crypto.subtle.verify(HMAC.name, key, one, signed)),
    ),
  );
  if (!matches.includes(true)) throw new InvalidWebhookError("the signature does not match");
}

function valueOf(headers: WebhookHeaders, wanted: string): string | undefined {
  if (headers instanceof Headers) return headers.get(wanted) ?? undefined;
  const found = Object.entries(headers).find(([name]) => name.toLowerCase() === wanted.toLowerCase())?.[1];
  return typeof found === "object" ? found.join(",") : found;
}

function required(headers: WebhookHeaders, name: string): string {
  const value = valueOf(headers, name);
  if (!value) throw new InvalidWebhookError(`the header ${name} is missing`);
  return value;
}

function pair(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function signatures(parts: readonly [string, string][]): string[] {
  return parts.filter(([name]) => name === "v1").map(([, value]) => value);
}

const isNumber = (text: string): boolean => /^[0-9]+$/.test(text);

function bytesOf(...parts: WebhookBody[]): Uint8Array<ArrayBuffer> {
  const chunks = parts.map((part) =>
    typeof part === "string" ? new TextEncoder().encode(part) : new Uint8Array(part),
  );
  const whole = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

function fromHex(text: string): Uint8Array<ArrayBuffer> | undefined {
  // Lower case alone: a signature has one form.
  if (!/^(?:[0-9a-f]{2})+$/.test(text)) return undefined;
  return Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    // `atob` takes spaces, and bits that are left over: a signature has one form.
    return btoa(String.fromCharCode(...bytes)) === text ? bytes : undefined;
  } catch {
    return undefined;
  }
}
