import { type Clock, startTimer } from "./clock.js";
import { Download } from "./download.js";
import {
  ApiError,
  ConnectionError,
  InvalidResponseError,
  MsgsvcError,
  TimeoutError,
  TransportError,
} from "./errors.js";
import { ERROR_CLASSES } from "./generated/errors.js";
import { type Page, Paginator } from "./pagination.js";
import { VERSION } from "./version.js";

/** What may be set for each call; without it, what the client was made with. */
export interface RequestOptions {
  /** Ends the call, its retries and the body of a download. */
  signal?: AbortSignal | undefined;
  /** Milliseconds for one attempt, and between two chunks of a download; `Infinity` for no limit. */
  timeoutMs?: number | undefined;
  /** Milliseconds for all attempts and the waits between them; `Infinity` for no limit. */
  deadlineMs?: number | undefined;
  /** The first one included; 1 never retries. */
  maxAttempts?: number | undefined;
}

/** Options of a POST. */
export interface PostOptions extends RequestOptions {
  /**
   * 8 to 128 characters of `A-Z a-z 0-9 _ -`. Without it each call has a random one, the same in its retries. Give
   * your own, such as the id of an order, to be safe across restarts of your program too.
   */
  idempotencyKey?: string | undefined;
}

export type QueryValue = string | number | boolean | null | undefined;

/** A file that is sent as multipart/form-data, with texts as other parts. */
interface FileBody {
  readonly field: string;
  readonly content: Blob;
  readonly name: string;
  readonly parts?: object | undefined;
}

/** One operation with its arguments, as the generated methods describe it. */
export interface Call {
  readonly method: string;
  readonly path: string;
  readonly query?: object | undefined;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as multipart/form-data. */
  readonly file?: FileBody | undefined;
  /** Whether the operation takes an idempotency key. */
  readonly keyed?: boolean | undefined;
  /** Fields of the answer that are not shown when it is printed. */
  readonly secrets?: readonly string[] | undefined;
}

/** An answer as it came, for logs and metrics. */
export interface ResponseInfo {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  /** From 1. */
  readonly attempt: number;
  readonly requestId: string | null;
  /** Whether it is the stored answer of an earlier request with the same key. */
  readonly replayed: boolean;
  /** Of the project; null where the answer does not say. */
  readonly rateLimit: { readonly limit: number; readonly remaining: number; readonly resetAt: Date } | null;
}

/** An attempt that failed and will be repeated. */
export interface RetryInfo {
  readonly error: MsgsvcError;
  /** The one that failed, from 1. */
  readonly attempt: number;
  readonly delayMs: number;
}

export interface TransportSettings {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly deadlineMs: number;
  readonly maxAttempts: number;
  readonly onResponse: ((response: ResponseInfo) => void) | undefined;
  readonly onRetry: ((retry: RetryInfo) => void) | undefined;
}

/** Milliseconds before the first retry, at most; each further one waits twice as long. */
const FIRST_BACKOFF_MS = 500;

const MAX_BACKOFF_MS = 8_000;

/** The most that is added to `Retry-After`, so that clients which were told the same second come one by one. */
const MAX_SPREAD_MS = 1_000;

/** Statuses of proxies after which another attempt may succeed. */
const RETRYABLE_STATUSES = new Set([425, 429, 500, 502, 503, 504]);

const IDEMPOTENCY_KEY = /^[A-Za-z0-9_-]{8,128}$/;

const INSPECT = Symbol.for("nodejs.util.inspect.custom");

interface Attempt {
  readonly call: Call;
  readonly url: string;
  readonly init: RequestInit;
  readonly number: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  /** Whether an earlier attempt got no answer. */
  readonly unanswered: boolean;
}

/** Sends requests: the key, attempts, time limits, and errors from answers. */
export class Transport {
  // Private, so that printing a client shows no key.
  readonly #settings: TransportSettings;

  constructor(settings: TransportSettings) {
    this.#settings = settings;
  }

  get clock(): Clock {
    return this.#settings.clock;
  }

  /** The limits of a call with these options. */
  limitsOf(options: RequestOptions): { readonly timeoutMs: number; readonly deadlineMs: number } {
    const { timeoutMs, deadlineMs } = this.#settings;
    return {
      timeoutMs: positive("timeoutMs", options.timeoutMs ?? timeoutMs),
      deadlineMs: positive("deadlineMs", options.deadlineMs ?? deadlineMs),
    };
  }

  reportRetry(retry: RetryInfo): void {
    this.#settings.onRetry?.(retry);
  }

  /** The JSON of the answer; undefined if it has no body. */
  async json<T>(call: Call, options: PostOptions = {}): Promise<T> {
    return this.#retrying(call, options, (attempt) =>
      this.#within(attempt, async (signal) => {
        const response = await this.#fetch(attempt, signal);
        const text = await response.text();
        if (!response.ok) throw errorOf(attempt, response, text);
        if (response.status === 204) return undefined as T;
        return concealed(parsed(attempt, text), call.secrets) as T;
      }),
    );
  }

  /** A list whose operation takes `cursor`. */
  list<T>(call: Call, options?: RequestOptions): Paginator<T> {
    const query: { cursor?: string | null | undefined } = call.query ?? {};
    const load = (cursor: string | undefined): Promise<Page<T>> =>
      this.json({ ...call, query: { ...query, cursor } }, options);
    return new Paginator(load, query.cursor ?? undefined);
  }

  /** The answer's body as it comes. What breaks while it is read is not retried. */
  async download(call: Call, options: RequestOptions = {}): Promise<Download> {
    const idleMs = options.timeoutMs ?? this.#settings.timeoutMs;
    return this.#retrying(call, options, async (attempt) => {
      const abort = new AbortController();
      const response = await this.#within(attempt, async (signal) => {
        const whenAborted = (): void => abort.abort(signal.reason);
        signal.addEventListener("abort", whenAborted, { once: true });
        const found = await this.#fetch(attempt, abort.signal);
        if (!found.ok) throw errorOf(attempt, found, await found.text());
        signal.removeEventListener("abort", whenAborted);
        return found;
      });
      return new Download(response, { abort, idleMs, signal: options.signal, ...call });
    });
  }

  async #retrying<T>(call: Call, options: PostOptions, run: (attempt: Attempt) => Promise<T>): Promise<T> {
    const { clock, maxAttempts } = this.#settings;
    const { deadlineMs, timeoutMs } = this.limitsOf(options);
    const { signal } = options;
    const attempts = options.maxAttempts ?? maxAttempts;
    const end = clock.now() + deadlineMs;
    const request = {
      call,
      url: this.#settings.baseUrl + call.path + queryOf(call.query),
      init: this.#requestOf(call, options),
      signal,
    };
    let unanswered = false;
    for (let number = 1; ; number += 1) {
      signal?.throwIfAborted();
      const left = Math.max(end - clock.now(), 0);
      const limit = Math.min(timeoutMs, left);
      try {
        return await run({ ...request, number, unanswered, timeoutMs: limit });
      } catch (error) {
        // The attempt before, whose answer was lost, has deleted it.
        const isGone = error instanceof ApiError && error.status === 404 && error.earlierAttemptUnanswered;
        if (call.method === "DELETE" && isGone) return undefined as T;
        if (number >= attempts || !isRepeatable(call, error)) throw error;
        const delayMs = backoffMs(number, error, clock.random());
        // The caller gets the error now, not after a wait that can't help.
        if (clock.now() + delayMs >= end) throw error;
        unanswered ||= mayHaveTakenEffect(error);
        this.reportRetry({ error, attempt: number, delayMs });
        await clock.sleep(delayMs, signal);
      }
    }
  }

  #requestOf(call: Call, options: PostOptions): RequestInit {
    const headers: Record<string, string> = {
      Accept: "application/json",
      Authorization: `Bearer ${this.#settings.apiKey}`,
    };
    // Browsers name themselves, and ask the service for leave to say anything else.
    if (typeof document === "undefined") headers["User-Agent"] = `msgsvc-client-typescript/${VERSION}`;
    if (call.keyed) {
      const key = options.idempotencyKey ?? randomKey();
      if (!IDEMPOTENCY_KEY.test(key)) {
        throw new TypeError("idempotencyKey has 8 to 128 characters of A-Z a-z 0-9 _ -");
      }
      headers["Idempotency-Key"] = key;
    }
    // A redirect is not followed: it could turn a POST into a GET, and carry the key to another host.
    const init: RequestInit = { method: call.method, headers, redirect: "manual" };
    if (call.file) {
      // Written here and not as FormData, so that each attempt sends the same bytes.
      const { body, type } = multipart(call.file);
      headers["Content-Type"] = type;
      init.body = body;
    } else if (call.body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(call.body);
    }
    return init;
  }

  /** Runs `work` with a signal that the caller or the time limit aborts. */
  async #within<T>(attempt: Attempt, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { call, number: attempts, signal, timeoutMs } = attempt;
    const controller = new AbortController();
    const abort = (): void => controller.abort(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    const expire = (): void => {
      const message = `no answer within ${Math.round(timeoutMs)} ms`;
      controller.abort(new TimeoutError(message, call.method, call.path, { attempts }));
    };
    const timer = startTimer(expire, timeoutMs);
    try {
      return await work(controller.signal);
    } catch (error) {
      if (controller.signal.aborted) throw controller.signal.reason;
      if (error instanceof MsgsvcError) throw error;
      throw new ConnectionError("the service can't be reached", call.method, call.path, { cause: error, attempts });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }

  async #fetch(attempt: Attempt, signal: AbortSignal): Promise<Response> {
    const { fetch, onResponse } = this.#settings;
    const { call } = attempt;
    const response = await fetch(attempt.url, { ...attempt.init, signal });
    onResponse?.({
      method: call.method,
      path: call.path,
      status: response.status,
      attempt: attempt.number,
      requestId: response.headers.get("X-Request-Id"),
      replayed: response.headers.get("Idempotent-Replayed") === "true",
      rateLimit: rateLimitOf(response.headers),
    });
    return response;
  }
}

/** Raises a RangeError for what is no time to wait; `Infinity` is one. */
export function positive(name: string, ms: number): number {
  if (!(ms > 0)) throw new RangeError(`${name} is more than 0 milliseconds, or Infinity`);
  return ms;
}

/** A value as one segment of a path. */
export function segment(value: string, name: string): string {
  // Empty and dotted segments would lead to another endpoint.
  if (value === "" || value === "." || value === "..") throw new TypeError(`${name} can't be ${JSON.stringify(value)}`);
  return encodeURIComponent(value);
}

function queryOf(query: object | undefined): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {}) as [string, QueryValue | QueryValue[]][]) {
    if (value === undefined || value === null) continue;
    for (const each of Array.isArray(value) ? value : [value]) params.append(name, String(each));
  }
  const text = params.toString();
  return text && `?${text}`;
}

/**
 * Another attempt of the same request does no harm: it has a key, or sets a state. A POST without a key is repeated
 * only if the service itself says that nothing has happened.
 */
function isRepeatable(call: Call, error: unknown): error is ApiError | TransportError {
  if (!(error instanceof ApiError || error instanceof TransportError)) return false;
  const isSafe = call.method !== "POST" || call.keyed === true;
  return error.retryable && (isSafe || !mayHaveTakenEffect(error));
}

/** After an error of the service itself nothing has happened; after one of a proxy, or no answer, nobody knows. */
function mayHaveTakenEffect(error: ApiError | TransportError): boolean {
  return error instanceof ApiError ? error.status >= 500 && error.docsUrl === "" : true;
}

function backoffMs(attempt: number, error: ApiError | TransportError, random: number): number {
  const longest = Math.min(FIRST_BACKOFF_MS * 2 ** (attempt - 1), MAX_BACKOFF_MS);
  const asked = error instanceof ApiError ? error.retryAfterS : null;
  if (asked !== null) return asked * 1000 + Math.min(longest, MAX_SPREAD_MS) * random;
  // At random, so that clients which failed together don't return together; half at least, so that a service has
  // time to start again.
  return (longest / 2) * (1 + random);
}

function errorOf(attempt: Attempt, response: Response, text: string): ApiError {
  const { method, path } = attempt.call;
  const { status } = response;
  const seconds = response.headers.get("Retry-After");
  const where = {
    status,
    retryAfterS: seconds !== null && /^\d+$/.test(seconds) ? Number(seconds) : null,
    requestId: response.headers.get("X-Request-Id"),
    attempts: attempt.number,
    earlierAttemptUnanswered: attempt.unanswered,
    method,
    path,
  };
  const envelope = envelopeOf(text);
  if (envelope) {
    const { error, code, retryable, docs_url: docsUrl } = envelope;
    const Class = Object.hasOwn(ERROR_CLASSES, code) ? ERROR_CLASSES[code as keyof typeof ERROR_CLASSES] : ApiError;
    return new Class({ error, code, retryable, docsUrl, ...where });
  }
  const error =
    status < 400
      ? "a redirect: is baseUrl the service's address?"
      : "not an answer of the service, but of something before it";
  const retryable = RETRYABLE_STATUSES.has(status);
  return new ApiError({ error, code: `http_${status}`, retryable, docsUrl: "", ...where });
}

interface Envelope {
  error: string;
  code: string;
  retryable: boolean;
  docs_url: string;
}

function envelopeOf(text: string): Envelope | undefined {
  try {
    const found: Partial<Envelope> | null = JSON.parse(text);
    const complete =
      typeof found?.error === "string" &&
      typeof found.code === "string" &&
      typeof found.retryable === "boolean" &&
      typeof found.docs_url === "string";
    return complete ? (found as Envelope) : undefined;
  } catch {
    // A page of something before the service: `errorOf` says so.
    return undefined;
  }
}

function parsed({ call, number: attempts }: Attempt, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Without the cause, which quotes the text.
    throw new InvalidResponseError("an answer that is not JSON", call.method, call.path, { attempts });
  }
}

/** The same object; printed by Node.js or Deno, its secrets are left out. */
function concealed(answer: unknown, secrets: readonly string[] | undefined): unknown {
  if (!secrets || typeof answer !== "object" || answer === null) return answer;
  const inspected = (_depth: unknown, options: unknown, inspect: (value: unknown, options: unknown) => string) => {
    const shown = Object.entries(answer).map(([name, value]) => [name, value && secrets.includes(name) ? "***" : value]);
    return inspect(Object.fromEntries(shown), options);
  };
  Object.defineProperty(answer, INSPECT, { value: inspected, enumerable: false });
  return answer;
}

function rateLimitOf(headers: Headers): ResponseInfo["rateLimit"] {
  const [limit, remaining, reset] = ["Limit", "Remaining", "Reset"].map((name) => headers.get(`X-RateLimit-${name}`));
  if (!limit || !remaining || !reset) return null;
  return { limit: Number(limit), remaining: Number(remaining), resetAt: new Date(Number(reset) * 1000) };
}

/** 128 random bits. `crypto.randomUUID` is missing on pages without https. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function multipart(file: FileBody): { body: Blob; type: string } {
  const boundary = `msgsvc-${randomKey()}`;
  // Not encoded: receivers don't agree on how such a name is to be read.
  const name = file.name.replace(/["\\\r\n]/g, "_");
  const parts = Object.entries(file.parts ?? {})
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([part, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${part}"\r\n\r\n${String(value)}\r\n`);
  const head =
    `${parts.join("")}--${boundary}\r\nContent-Disposition: form-data; name="${file.field}"; filename="${name}"\r\n` +
    `Content-Type: ${file.content.type || "application/octet-stream"}\r\n\r\n`;
  return {
    body: new Blob([head, file.content, `\r\n--${boundary}--\r\n`]),
    type: `multipart/form-data; boundary=${boundary}`,
  };
}
