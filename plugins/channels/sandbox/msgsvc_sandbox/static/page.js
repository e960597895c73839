// What the other modules need of the page: elements, its words, and copies of its shapes.

export const root = document.body.dataset.root;
export const personId = document.body.dataset.person;
export const lang = document.documentElement.lang;

export const byId = (id) => document.getElementById(id);

const words = byId("words").dataset;

/** A text of the page in its language; `{name}` in it is replaced by `values.name`. */
export function word(name, values = {}) {
  return words[name].replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole);
}

/** A copy of the element in a <template>. Whatever is put in goes in as text, never as markup. */
export function copyOf(templateId) {
  return byId(templateId).content.firstElementChild.cloneNode(true);
}

/** An address that a page may lead to, or null for `javascript:` and the like. */
export function safeUrl(address) {
  try {
    const url = new URL(address);
    return ["http:", "https:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** Where a file lies that this person has attached. */
export const fileUrl = (id) =>
  new URL(`${root}/api/people/${personId}/files/${encodeURIComponent(id)}`, location.href).href;

/** Shows a sentence for a moment, and has it read out. */
export function tell(text) {
  const toast = copyOf("toast");
  toast.textContent = text;
  byId("toasts").append(toast);
  setTimeout(() => toast.remove(), 5000);
}
