import type { StatusAnswer } from "./generated/types.js";
import { Resource } from "./resource.js";
import type { RequestOptions } from "./transport.js";

/** Seconds for which the service holds one request until the person decides. */
const HOLD_S = 25;

/** Milliseconds between requests that the service did not hold, as while it stops. */
const PAUSE_MS = 2_000;

/** `client.auth.sessions` beside its generated operations. */
export abstract class SessionWaiting extends Resource {
  abstract getStatus(sessionId: string, query?: { wait?: number | null | undefined }, options?: RequestOptions): Promise<StatusAnswer>;

  /**
   * Waits until the person has decided, or the session has expired, which the service decides.
   *
   * The answer's `status` is `confirmed`, and `code` is there for `auth.verify`; or `denied`, `expired` or
   * `consumed`. `signal` ends the wait sooner.
   */
  async wait(sessionId: string, options: RequestOptions = {}): Promise<StatusAnswer> {
    const { clock } = this.transport;
    const patient = { timeoutMs: (HOLD_S + 10) * 1000, ...options };
    for (;;) {
      const asked = clock.now();
      const answer = await this.getStatus(sessionId, { wait: HOLD_S }, patient);
      if (answer.status !== "pending") return answer;
      if (clock.now() - asked < PAUSE_MS) await clock.sleep(PAUSE_MS, options.signal);
    }
  }
}
