// Plays calls with the TypeScript client: one JSON object on a line, and its outcome on the next of stdout.

import { createInterface } from "node:readline";

const [clientModule, baseUrl] = process.argv.slice(2);
const msgsvc = await import(clientModule);

/** Retries wait for a twentieth of the usual time, as the service's own waits are the only ones looked at. */
const clock = {
  now: () => Date.now(),
  random: () => 0,
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, ms < 1_000 ? ms / 20 : ms);
      signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
    }),
};

const clients = new Map();

function clientOf(apiKey) {
  if (!clients.has(apiKey)) clients.set(apiKey, new msgsvc.Client({ baseUrl, apiKey, clock, maxAttempts: 3 }));
  return clients.get(apiKey);
}

function camel(name) {
  return name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
}

function optionsOf({ options = {}, once }) {
  return {
    ...(options.idempotency_key && { idempotencyKey: options.idempotency_key }),
    ...(options.timeout_s && { timeoutMs: options.timeout_s * 1000 }),
    ...(once && { maxAttempts: 1 }),
  };
}

async function perform(call) {
  if (call.webhook) {
    const { headers, body, secrets } = call.webhook;
    const { event, data } = await msgsvc.openWebhook(headers, body, secrets);
    return { answer: { event, data } };
  }
  const names = call.call.split(".").map(camel);
  const method = names.pop();
  const resource = names.reduce((found, name) => found[name], clientOf(call.api_key));
  const given = [...(call.path ?? []), ...[call.body, call.query].filter((each) => each !== undefined)];
  const found = resource[method](...given, optionsOf(call));
  if (!call.all) return { answer: (await found) ?? null };
  const items = [];
  for await (const item of found) items.push(item);
  return { items };
}

function failure(error) {
  if (error instanceof msgsvc.ApiError) {
    const { code, status, retryable } = error;
    if (code.startsWith("http_")) return { failed: `not the service's answer: ${status}` };
    return { error: { class: error.constructor.name.replace(/Error$/, ""), code, status, retryable } };
  }
  if (error instanceof msgsvc.InvalidResponseError) return { failed: "not the service's answer" };
  if (error instanceof msgsvc.TimeoutError) return { failed: "no answer in time" };
  if (error instanceof msgsvc.ConnectionError) return { failed: "the connection broke" };
  if (error instanceof msgsvc.InvalidWebhookError) return { failed: "the webhook is not the service's" };
  return { failed: `unexpectedly: ${error}` };
}

for await (const line of createInterface({ input: process.stdin })) {
  const outcome = await perform(JSON.parse(line)).catch(failure);
  process.stdout.write(`${JSON.stringify(outcome)}\n`);
}
