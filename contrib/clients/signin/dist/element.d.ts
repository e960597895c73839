/** `<msgsvc-signin>`: signs in on the page where the link in it stands, or follows what the server began. */
import { type State } from "./sign-in.js";
/** Loaded on a server, there is nothing to extend. */
declare const Base: typeof HTMLElement;
/**
 * Attributes: `session`, `inline` and `csrf-token`; of a page whose sign-in the server began, `status-url`,
 * `expires-in` and `ended-url`. Texts are replaced by `data-lead`, `data-lead-number` and so on.
 *
 * Fires `msgsvc-signin:change`, and `msgsvc-signin:completed`, whose default is to go to `redirect`, or
 * without one to submit the form around it. The state is their `detail`.
 */
export declare class MsgsvcSignIn extends Base {
    #private;
    /** Sent along when a sign-in is begun. */
    headers: Record<string, string>;
    constructor();
    get state(): State;
    /** As the link does. */
    start(): Promise<void>;
    cancel(): void;
    connectedCallback(): void;
    disconnectedCallback(): void;
}
declare global {
    interface HTMLElementTagNameMap {
        "msgsvc-signin": MsgsvcSignIn;
    }
    interface HTMLElementEventMap {
        "msgsvc-signin:change": CustomEvent<State>;
        "msgsvc-signin:completed": CustomEvent<State>;
    }
}
export {};
