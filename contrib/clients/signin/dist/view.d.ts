/** What a sign-in looks like: the panel with the messengers, and the progress that both kinds of pages show. */
import type { SignIn, State } from "./sign-in.js";
import type { Put } from "./texts.js";
export interface View<E extends HTMLElement = HTMLElement> {
    readonly root: E;
    /** Shows a state; also called each second while one waits. */
    show(state: State): void;
}
/** How it stands, and how long it lasts. The time is not announced: a screen reader would read each second. */
export declare function createProgress(put: Put): View;
/** The panel of a page that has no view of its own. */
export declare function createPanel(signIn: Pick<SignIn, "start" | "cancel">, put: Put, title: string): View<HTMLDialogElement>;
