"use strict";

// The page is whole without this script: it searches, remembers the language of examples, and tries calls.

const nav = document.querySelector(".side");
const find = document.querySelector("#find");
const operations = [...document.querySelectorAll(".operation")];
const texts = new Map(operations.map((each) => [each, each.querySelector(".about").textContent.toLowerCase()]));

find.parentElement.hidden = false;
find.addEventListener("input", () => {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = new Set();
  for (const each of operations) {
    const matches = words.every((word) => texts.get(each).includes(word));
    each.hidden = !matches;
    if (matches) found.add(each.id);
  }
  for (const entry of nav.querySelectorAll("[data-of]")) entry.hidden = !found.has(entry.dataset.of);
  for (const group of nav.querySelectorAll("details")) {
    group.hidden = !group.querySelector("[data-of]:not([hidden])");
    if (words.length > 0) group.open = true;
  }
  document.querySelector("#nothing").hidden = found.size > 0;
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if ((event.key === "/" && !typing) || (event.key === "k" && (event.ctrlKey || event.metaKey))) {
    event.preventDefault();
    find.focus();
  }
});

const CHOSEN = "msgsvc docs language";
for (const choice of document.querySelectorAll('[name="language"]')) {
  choice.checked = choice.value === (localStorage.getItem(CHOSEN) || "curl");
  choice.addEventListener("change", () => localStorage.setItem(CHOSEN, choice.value));
}

// A call is made from here with a key that stays in this tab.
const KEY = "msgsvc docs key";
const root = location.pathname.replace(/\/docs\/?$/, "");

function field(form, label, name, value, kind = "input") {
  const wrapped = document.createElement("label");
  const input = document.createElement(kind);
  wrapped.textContent = label;
  input.name = name;
  input.value = value;
  input.spellcheck = false;
  if (kind === "input") input.autocomplete = "off";
  wrapped.append(input);
  form.append(wrapped);
  return input;
}

function formOf(operation) {
  const { method, path } = operation.dataset;
  const form = document.createElement("form");
  const key = field(form, "API key", "key", sessionStorage.getItem(KEY) || "");
  const parts = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name, field(form, name, name, "")]);
  const query = method === "GET" ? field(form, "Query", "query", "") : null;
  const example = operation.querySelector("template");
  const body = example ? field(form, "Body", "body", example.content.textContent.trim(), "textarea") : null;
  const send = document.createElement("button");
  send.textContent = `Send ${method}`;
  const said = document.createElement("pre");
  said.tabIndex = 0;
  said.hidden = true;
  said.setAttribute("role", "status");
  form.append(send, said);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY, key.value);
    let address = root + path;
    for (const [name, input] of parts) address = address.replace(`{${name}}`, encodeURIComponent(input.value));
    if (query && query.value) address += `?${query.value.replace(/^\?/, "")}`;
    const headers = key.value ? { Authorization: `Bearer ${key.value}` } : {};
    if (body) headers["Content-Type"] = "application/json";
    send.disabled = true;
    try {
      const answer = await fetch(address, { method, headers, body: body ? body.value : undefined });
      const text = await answer.text();
      let shown = text;
      try {
        shown = JSON.stringify(JSON.parse(text), null, 2);
      } catch {
        // Not JSON: shown as it came.
      }
      said.textContent = `${answer.status} ${answer.statusText}\n${shown}`;
    } catch (error) {
      said.textContent = `No answer: ${error.message}`;
    }
    said.hidden = false;
    send.disabled = false;
  });
  return form;
}

for (const operation of operations) {
  if (!operation.dataset.path) continue;
  const place = document.createElement("div");
  const button = document.createElement("button");
  place.className = "try";
  button.type = "button";
  button.textContent = "Try it";
  button.setAttribute("aria-label", `Try it: ${operation.dataset.method} ${operation.dataset.path}`);
  button.addEventListener("click", () => {
    const form = formOf(operation);
    button.replaceWith(form);
    form.querySelector("input").focus();
  });
  place.append(button);
  operation.querySelector(".samples").append(place);
}
