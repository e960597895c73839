import type { SessionStatus } from "./generated/types.js";
import { Resource } from "./resource.js";
import type { RequestOptions } from "./transport.js";

/** Seconds for which the service holds one request until the person decides. */
const HOLD_S = 25;

/** Milliseconds between requests that the service did not hold, as while it stops. */
const PAUSE_MS = 2_000;

export interface WaitOptions extends RequestOptions {
  /** Milliseconds to wait for the person. */
  maxWaitMs?: number | undefined;
}

/** `client.auth.sessions` beside its generated operations. */
export abstract class SessionWaiting extends Resource {
  abstract getStatus(sessionId: string, query?: { wait?: number | null | undefined }, options?: RequestOptions): Promise<SessionStatus>;

  /**
   * Waits until the person has decided, or the session has expired.
   *
   * The answer's `status` is `confirmed`, and `code` is there for `auth.verify`; or `denied`, `expired` or
   * `consumed`. It is `pending` if nothing happened within `maxWaitMs`, ten minutes by default.
   */
  async wait(sessionId: string, options: WaitOptions = {}): Promise<SessionStatus> {
    const { clock } = this.transport;
    const { maxWaitMs = 600_000, ...request } = options;
    const { timeoutMs, deadlineMs } = this.transport.limitsOf(request);
    // Half of a call's deadline is left for what may go wrong with it.
    const longest = Math.min(HOLD_S, Math.floor(deadlineMs / 2_000));
    const end = clock.now() + maxWaitMs;
    for (;;) {
      const begun = clock.now();
      const wait = Math.max(0, Math.min(longest, Math.floor((end - begun) / 1000)));
      const answer = await this.getStatus(sessionId, { wait }, { ...request, timeoutMs: wait * 1000 + timeoutMs });
      const now = clock.now();
      if (answer.status !== "pending" || now >= end) return answer;
      const pause = Math.min(PAUSE_MS - (now - begun), end - now);
      if (pause > 0) await clock.sleep(pause, options.signal);
    }
  }
}
