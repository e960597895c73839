/** What the tests share: a service that answers as told, and time that passes when a client waits. */

import { Client } from "../dist/index.js";

export const API_KEY = "msk_a-key-that-nobody-may-read";

/** Time that stands still but for waits, which take no time and are noted. */
export class FakeClock {
  time = 0;
  waits = [];
  chance = 0;

  now() {
    return this.time;
  }

  async sleep(ms, signal) {
    signal?.throwIfAborted();
    this.waits.push(ms);
    this.time += ms;
  }

  random() {
    return this.chance;
  }
}

/** `fetch` that answers each request with the next of `answers`: a Response, an Error, or a function of the request. */
export class FakeService {
  requests = [];

  constructor(...answers) {
    this.answers = answers;
  }

  fetch = async (url, init) => {
    const body = init.body instanceof Blob ? await init.body.text() : init.body;
    const request = { ...init, url: new URL(url), body, headers: new Headers(init.headers) };
    this.requests.push(request);
    const next = this.answers.shift();
    if (next === undefined) throw new Error(`no answer for ${init.method} ${url}`);
    const answer = typeof next === "function" ? await next(request) : next;
    if (answer instanceof Error) throw answer;
    return answer;
  };
}

/** A client, its service and its clock. */
export function clientOf(answers, options = {}) {
  const service = new FakeService(...answers);
  const clock = new FakeClock();
  const { fetch } = service;
  const client = new Client({ baseUrl: "https://msgsvc.test", apiKey: API_KEY, fetch, clock, ...options });
  return { client, service, clock };
}

export function json(value, { status = 200, headers = {} } = {}) {
  return new Response(JSON.stringify(value), { status, headers: { "Content-Type": "application/json", ...headers } });
}

export function refusal(status, code, { headers = {}, retryable = status >= 500 || status === 429 || status === 425 } = {}) {
  const envelope = { error: `a refusal: ${code}`, code, retryable, docs_url: `https://msgsvc.test/docs/errors#${code}` };
  return json(envelope, { status, headers });
}

/** A request that is answered only by its signal. */
export function silence({ signal }) {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
