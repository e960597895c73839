/** Time and chance, which tests replace. */
export interface Clock {
  /** Milliseconds that only grow; where they start does not matter. */
  now(): number;
  /** Waits for so many milliseconds, or rejects with `signal.reason`. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** A number from 0 up to 1, for jitter. */
  random(): number;
}

export const systemClock: Clock = {
  now: () => performance.now(),

  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", abort);
        resolve();
      }, ms);
      const abort = (): void => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
    }),

  random: () => Math.random(),
};
