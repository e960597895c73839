/** What the element says, in English and Russian. `{name}` is a messenger, `{time}` the time that is left. */
declare const TEXTS: {
    lead: [string, string];
    leadNumber: [string, string];
    open: [string, string];
    newTab: [string, string];
    write: [string, string];
    scan: [string, string];
    starting: [string, string];
    waiting: [string, string];
    offline: [string, string];
    left: [string, string];
    ending: [string, string];
    confirmed: [string, string];
    denied: [string, string];
    expired: [string, string];
    failed: [string, string];
    more: [string, string];
    again: [string, string];
    cancel: [string, string];
};
export type Name = keyof typeof TEXTS;
export type Texts = Record<Name, string>;
/**
 * Writes a text into an element, with a value in its braces and what stands behind it, and says which language it is in,
 * unless the page gave it: then it is in the page's.
 */
export type Put = <E extends HTMLElement>(node: E, name: Name, value?: string, ...behind: (Node | string)[]) => E;
/** Writes in Russian for such a language tag, in English for any other, but for the texts that the page gives. */
export declare function createPut(tag: string, given: DOMStringMap): Put;
export {};
