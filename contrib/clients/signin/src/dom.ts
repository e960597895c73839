/** Makes elements: no markup is parsed, so a policy of trusted types has nothing to refuse. */

export type Attributes = Record<string, string>;

const SVG = "http://www.w3.org/2000/svg";

function fill<E extends Element>(element: E, attributes: Attributes, content: (Node | string)[]): E {
  for (const name in attributes) element.setAttribute(name, attributes[name]!);
  element.append(...content);
  return element;
}

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes,
  ...content: (Node | string)[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, content);
}

export function draw(tag: "svg" | "path", attributes: Attributes, ...content: Node[]): SVGElement {
  return fill(document.createElementNS(SVG, tag), attributes, content);
}
