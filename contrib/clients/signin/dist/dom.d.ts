/** Makes elements: no markup is parsed, so a policy of trusted types has nothing to refuse. */
export type Attributes = Record<string, string>;
export declare function make<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes, ...content: (Node | string)[]): HTMLElementTagNameMap[K];
export declare function draw(tag: "svg" | "path", attributes: Attributes, ...content: Node[]): SVGElement;
