/** Every error of the client: of the service, of the way to it, and of a webhook that it did not sign. */
export class MsgsvcError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Statuses of proxies after which another attempt may succeed. */
const RETRYABLE_STATUSES = new Set([408, 425, 429, 500, 502, 503, 504]);

/** What the service answered: the four fields of the envelope, and where it was said. */
export interface ErrorDetails {
  /** For people. */
  readonly error: string;
  readonly code: string;
  readonly retryable: boolean;
  readonly docsUrl: string;
  readonly status: number;
  /** Seconds that the service asks to wait, from `Retry-After`. */
  readonly retryAfterS: number | null;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** `X-Request-Id`: quote it when you ask the operator. */
  readonly requestId: string | null;
}

/**
 * The service refused the request. Each code has a subclass, such as `NotFoundError`; a code that is newer than
 * this client is an `ApiError` alone.
 */
export class ApiError extends MsgsvcError {
  readonly code: string;
  readonly status: number;
  readonly retryable: boolean;
  readonly docsUrl: string;
  readonly retryAfterS: number | null;
  readonly method: string;
  readonly path: string;
  readonly requestId: string | null;

  constructor(details: ErrorDetails) {
    super(`${details.error} (${details.status} ${details.code}, ${details.method} ${details.path})`);
    this.code = details.code;
    this.status = details.status;
    this.retryable = details.retryable;
    this.docsUrl = details.docsUrl;
    this.retryAfterS = details.retryAfterS;
    this.method = details.method;
    this.path = details.path;
    this.requestId = details.requestId;
  }
}

/** There is no answer, or not the whole of it: whether the request had an effect is unknown. */
export class TransportError extends MsgsvcError {
  readonly method: string;
  readonly path: string;

  constructor(message: string, method: string, path: string, options?: ErrorOptions) {
    super(`${message} (${method} ${path})`, options);
    this.method = method;
    this.path = path;
  }

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return true;
  }
}

/** The service could not be reached, or the connection broke. */
export class ConnectionError extends TransportError {}

/** There was no answer within `timeoutMs`, or not within `deadlineMs` over all attempts. */
export class TimeoutError extends TransportError {}

/** Something other than the service answered, such as a proxy's page or a redirect. */
export class UnexpectedResponseError extends TransportError {
  readonly status: number;
  readonly retryAfterS: number | null;

  constructor(
    message: string,
    details: { status: number; retryAfterS: number | null; method: string; path: string },
  ) {
    super(`${details.status}: ${message}`, details.method, details.path);
    this.status = details.status;
    this.retryAfterS = details.retryAfterS;
  }

  override get retryable(): boolean {
    return RETRYABLE_STATUSES.has(this.status);
  }
}

/** The service did not sign this webhook: answer it with 400. The message says what is wrong. */
export class InvalidWebhookError extends MsgsvcError {}
