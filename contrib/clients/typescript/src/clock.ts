/** Time and chance, which tests replace. */
export interface Clock {
  /** Milliseconds that only grow; where they start does not matter. */
  now(): number;
  /** Waits for so many milliseconds, or rejects with `signal.reason`. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** A number from 0 up to 1, for jitter. */
  random(): number;
}

/** The longest that a timer can be set to, some 24 days; a longer one would expire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** `setTimeout` for any time: one of more than 24 days never comes. */
export function startTimer(expire: () => void, ms: number): ReturnType<typeof setTimeout> | undefined {
  return ms > MAX_TIMER_MS ? undefined : setTimeout(expire, ms);
}

export const systemClock: Clock = {
  now: () => performance.now(),

  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", abort);
        resolve();
      }, Math.min(ms, MAX_TIMER_MS));
      const abort = (): void => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
    }),

  random: () => Math.random(),
};
