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
export type Texts = Record<keyof typeof TEXTS, string>;
/** The texts in Russian for such a language tag, in English for any other; and the language that they are in. */
export declare function textsFor(tag: string): [language: string, texts: Texts];
export {};
