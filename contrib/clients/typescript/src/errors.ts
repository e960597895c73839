/** Every error of the client: of the service, of the way to it, and of a webhook that it did not sign. */
export class MsgsvcError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

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
  /** How many attempts were made. */
  readonly attempts: number;
  /** Whether an earlier attempt got no answer, and may have had the effect that this one was refused. */
  readonly earlierAttemptUnanswered: boolean;
}

/**
 * The request was refused. Each code has a subclass, such as `NotFoundError`. A code that is newer than this client
 * is an `ApiError` alone, and so is an answer of something before the service, such as a proxy: `http_502`.
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
  readonly attempts: number;
  readonly earlierAttemptUnanswered: boolean;

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
    this.attempts = details.attempts;
    this.earlierAttemptUnanswered = details.earlierAttemptUnanswered;
  }
}

/** There is no answer, or not the whole of it: whether the request had an effect is unknown. */
export class TransportError extends MsgsvcError {
  readonly method: string;
  readonly path: string;
  /** How many attempts were made. */
  readonly attempts: number;

  constructor(message: string, method: string, path: string, options: ErrorOptions & { attempts?: number } = {}) {
    const { attempts = 1, ...rest } = options;
    super(`${message} (${method} ${path})${attempts > 1 ? ` after ${attempts} attempts` : ""}`, rest);
    this.method = method;
    this.path = path;
    this.attempts = attempts;
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

/** An answer of success that is not of this API. */
export class InvalidResponseError extends TransportError {
  override get retryable(): boolean {
    return false;
  }
}

/** The service did not sign this webhook: answer it with 400. The message says what is wrong. */
export class InvalidWebhookError extends MsgsvcError {}
