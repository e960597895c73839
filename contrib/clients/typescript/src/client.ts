import { type Clock, systemClock } from "./clock.js";
import { Resources } from "./generated/resources.js";
import { type ResponseInfo, type RetryInfo, positive, Transport } from "./transport.js";

export interface ClientOptions {
  /** Where the service is: `https://msgsvc.example.com`, or with the path under which it is mounted. */
  baseUrl: string;
  /** The key of a project, from `msgsvc key create`. It belongs on your server, never into a page. */
  apiKey: string;
  /** Milliseconds for one attempt; 30,000 by default, `Infinity` for no limit. */
  timeoutMs?: number | undefined;
  /** Milliseconds for all attempts of a call and the waits between them; 60,000 by default, `Infinity` for no limit. */
  deadlineMs?: number | undefined;
  /** Attempts of a call, the first one included; 7 by default. */
  maxAttempts?: number | undefined;
  /** In place of the global one: a proxy, a pool of connections, a test. */
  fetch?: typeof fetch | undefined;
  /** In place of the system's time and chance: a test. */
  clock?: Clock | undefined;
  /** Called with every answer, for logs and metrics. */
  onResponse?: ((response: ResponseInfo) => void) | undefined;
  /** Called with every attempt that will be repeated. */
  onRetry?: ((retry: RetryInfo) => void) | undefined;
}

/**
 * The API of a project.
 *
 *     const client = new Client({ baseUrl: "https://msgsvc.example.com", apiKey });
 *     await client.messages.send({ external_id: "ann-1", text: "Your order is on its way." });
 *
 * It holds no connection of its own, so it needs no closing; make one and share it.
 */
export class Client extends Resources {
  constructor(options: ClientOptions) {
    const { baseUrl, apiKey, fetch: given, clock = systemClock, onResponse, onRetry } = options;
    // Not in the error: it could be most of a key. JavaScript may give undefined, which the expression would take.
    if (typeof apiKey !== "string" || !/^[\x21-\x7e]+$/.test(apiKey)) throw new TypeError("apiKey is empty or has characters that no key has");
    super(
      new Transport({
        baseUrl: rootOf(baseUrl),
        apiKey,
        // Looked up for each call: tests and tracing replace the global one later.
        fetch: given ?? ((input, init) => globalThis.fetch(input, init)),
        clock,
        timeoutMs: positive("timeoutMs", options.timeoutMs ?? 30_000),
        deadlineMs: positive("deadlineMs", options.deadlineMs ?? 60_000),
        maxAttempts: options.maxAttempts ?? 7,
        onResponse,
        onRetry,
      }),
    );
  }
}

function rootOf(baseUrl: string): string {
  let url: URL | undefined;
  try {
    url = new URL(baseUrl);
  } catch {
    // Told below, with an example in place of "Invalid URL".
  }
  if (url?.protocol !== "https:" && url?.protocol !== "http:") {
    throw new TypeError("baseUrl must be like https://msgsvc.example.com");
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new TypeError("baseUrl must have no user, password, query or fragment");
  }
  return url.origin + url.pathname.replace(/\/+$/, "");
}
