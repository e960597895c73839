/** Makes elements: no markup is parsed, so a policy of trusted types has nothing to refuse. */

export type Attributes = Record<string, string>;

interface Tags extends HTMLElementTagNameMap, Pick<SVGElementTagNameMap, "svg" | "path"> {}

const SVG = "http://www.w3.org/2000/svg";

export function make<K extends keyof Tags>(tag: K, attributes: Attributes, ...content: (Node | string)[]): Tags[K] {
  const isDrawn = tag === "svg" || tag === "path";
  const element = (isDrawn ? document.createElementNS(SVG, tag) : document.createElement(tag)) as Tags[K];
  for (const name in attributes) element.setAttribute(name, attributes[name]!);
  element.append(...content);
  return element;
}
