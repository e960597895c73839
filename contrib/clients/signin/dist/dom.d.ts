/** Makes elements: no markup is parsed, so a policy of trusted types has nothing to refuse. */
export type Attributes = Record<string, string>;
interface Tags extends HTMLElementTagNameMap, Pick<SVGElementTagNameMap, "svg" | "path"> {
}
export declare function make<K extends keyof Tags>(tag: K, attributes: Attributes, ...content: (Node | string)[]): Tags[K];
export {};
