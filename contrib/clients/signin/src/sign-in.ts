/** The course of a sign-in, without a view: it begins, waits for the answer in the messenger, and ends. */

/**
 * `idle`: not begun, or given up. `starting`: the site is asked. `pending`: the person may answer.
 * `confirmed`, `denied`, `expired`: how it ended. `failed`: the site could not be reached, or refused.
 */
export type Status = "idle" | "starting" | "pending" | "confirmed" | "denied" | "expired" | "failed";

/** A messenger in which the person can answer. */
export interface Messenger {
  /** The channel's name in the API, such as `telegram`. */
  channel: string;
  /** What people call it. */
  name: string;
  /** Opens the bot with this sign-in. */
  url: string;
  /** What to write to the bot, where the link only opens the chat. */
  startMessage?: string | undefined;
}

export interface State {
  readonly status: Status;
  readonly messengers: readonly Messenger[];
  /** The number to choose in the messenger; null if the bot asks for a plain Yes. */
  readonly number: number | null;
  /** When the time is up, by `Date.now()`. */
  readonly endsAt: number;
  /** False while the site doesn't answer; it is asked again and again. */
  readonly connected: boolean;
  /** Where to go with a confirmed sign-in, as the site said. */
  readonly redirect: string | null;
  /** The HTTP status with which the site refused; null otherwise. */
  readonly refusal: number | null;
}

/** What the site answers to the POST that begins a sign-in: fields of the service's own answer. */
export interface Begun {
  /** Links by channel. */
  links: Record<string, string>;
  /** Seconds until the sign-in runs out. */
  expires_in: number;
  /** What people call the channels: `{"max": "MAX"}`. By default their names with a capital. */
  names?: Record<string, string> | null;
  start_messages?: Record<string, string> | null;
  match_number?: number | null;
  /** Where to ask for the status; by default at the address that began it. */
  status_url?: string | null;
}

/** What the site answers to a GET for the status. */
export interface Told {
  /** `pending`, `confirmed` or `denied`; all else is shown as `expired`. */
  status: string;
  expires_in?: number | null;
  /** Where to go with a confirmed sign-in. */
  redirect?: string | null;
}

export interface Options {
  /** The address at the site that begins a sign-in by POST, and by GET tells how it stands. */
  session: string;
  /** Sent with the POST, such as a token against forged requests. */
  headers?: Record<string, string>;
}

export interface SignIn {
  /** A new object with each change, the same one in between. */
  readonly state: State;
  /** Calls the listener after each change, until the returned function is called. */
  subscribe(listener: (state: State) => void): () => void;
  /** Begins a sign-in, or another one with its own time. Never rejects: the state tells of a failure. */
  start(): Promise<void>;
  /** Waits for a sign-in that was begun elsewhere, for at most so many seconds. */
  follow(statusUrl: string, expiresIn: number): Promise<void>;
  /** Gives up. The person may still answer; nobody asks for the answer any more. */
  cancel(): void;
}

/** Seconds for which the site may hold an answer (`wait`), and those that it may take beyond. */
const WAIT_S = 25;
const GRACE_S = 15;
/** Seconds between questions to a site that doesn't hold its answers. */
const INTERVAL_S = 2;
/** Seconds after a failure; they double up to the latter. */
const PAUSE_S = 1;
const MAX_PAUSE_S = 20;

const IDLE: State = {
  status: "idle",
  messengers: [],
  number: null,
  endsAt: 0,
  connected: true,
  redirect: null,
  refusal: null,
};

export function createSignIn(options: Options): SignIn {
  let state = IDLE;
  /** Aborted when the sign-in ends, or another one takes its place. */
  let run = new AbortController();
  const listeners = new Set<(state: State) => void>();

  function set(change: Partial<State>): void {
    state = { ...state, ...change };
    for (const listener of listeners) listener(state);
  }

  function beginRun(change: Partial<State>): AbortSignal {
    run.abort();
    run = new AbortController();
    set({ ...IDLE, ...change });
    return run.signal;
  }

  function finish(change: Partial<State>): void {
    run.abort();
    set({ connected: true, ...change });
  }

  async function poll(url: string, signal: AbortSignal): Promise<void> {
    let woken: AbortController;
    let pauseS = PAUSE_S;
    for (const event of ["visibilitychange", "online"]) {
      // A phone that comes back from the messenger may hold a dead connection, and the answer is there.
      globalThis.addEventListener?.(event, () => document.hidden || woken.abort(), { signal });
    }
    while (!signal.aborted) {
      woken = new AbortController();
      const either = AbortSignal.any([signal, woken.signal]);
      const asked = Date.now();
      try {
        // After a failure at once: a held answer would leave it said that there is no connection.
        const waitS = pauseS > PAUSE_S ? 0 : WAIT_S;
        const address = `${url}${url.includes("?") ? "&" : "?"}wait=${waitS}`;
        const [refusal, told] = await ask<Told>(address, "GET", {}, either, waitS);
        // It was there already when another sign-in took this one's place, or none.
        if (signal.aborted) return;
        if (refusal >= 500 || refusal === 429) throw refusal;
        if (!told) return finish({ status: "failed", refusal });
        const { status, expires_in, redirect = null } = told;
        if (status !== "pending") {
          return finish({ status: status === "confirmed" || status === "denied" ? status : "expired", redirect });
        }
        set({ connected: true, endsAt: expires_in ? asked + expires_in * 1000 : state.endsAt });
        pauseS = PAUSE_S;
        if (Date.now() - asked < 1000) await rest(INTERVAL_S, either);
      } catch {
        if (either.aborted) continue;
        if (Date.now() > state.endsAt) return finish({ status: "expired" });
        // Not at the first: it may be the page that is left, or a moment without a network.
        if (pauseS > PAUSE_S) set({ connected: false });
        await rest(pauseS, either);
        pauseS = Math.min(pauseS * 2, MAX_PAUSE_S);
      }
    }
  }

  return {
    get state() {
      return state;
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async start() {
      const signal = beginRun({ status: "starting" });
      try {
        const [refusal, begun] = await ask<Begun>(options.session, "POST", options.headers, signal, 0);
        if (signal.aborted) return;
        if (!begun) return finish({ status: "failed", refusal });
        set({
          status: "pending",
          messengers: Object.entries(begun.links).map(([channel, url]) => ({
            channel,
            name: begun.names?.[channel] ?? channel.replace(/^./, (letter) => letter.toUpperCase()),
            url,
            startMessage: begun.start_messages?.[channel],
          })),
          number: begun.match_number ?? null,
          endsAt: Date.now() + begun.expires_in * 1000,
        });
        void poll(begun.status_url ?? options.session, signal);
      } catch {
        if (!signal.aborted) finish({ status: "failed" });
      }
    },
    follow(statusUrl, expiresIn) {
      return poll(statusUrl, beginRun({ status: "pending", endsAt: Date.now() + expiresIn * 1000 }));
    },
    cancel() {
      beginRun({});
    },
  };
}

/** The status of the answer, and what it says if that is a good one. */
async function ask<T>(
  url: string,
  method: string,
  headers: Record<string, string> | undefined,
  signal: AbortSignal,
  waitS: number,
): Promise<[status: number, said: T | false]> {
  const response = await fetch(url, {
    method,
    headers: { Accept: "application/json", ...headers },
    cache: "no-store",
    signal: AbortSignal.any([signal, AbortSignal.timeout((waitS + GRACE_S) * 1000)]),
  });
  return [response.status, response.ok && (await response.json())];
}

/** Waits that long, or until the signal. */
function rest(seconds: number, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    setTimeout(resolve, seconds * 1000);
    signal.onabort = resolve;
  });
}
