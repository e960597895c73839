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
export declare function createSignIn(options: Options): SignIn;
