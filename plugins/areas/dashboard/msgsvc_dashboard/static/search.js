"use strict";

// The search box: Ctrl+K or the link in the top bar opens it; without scripts the link leads to its page.
const finder = document.getElementById("finder");
const box = finder && finder.querySelector("input");
const found = finder && finder.querySelector("#search-hits");

// What was opened lately stays in this tab alone and until its end: a name must not outlive the session in a
// browser that others use.
const KEPT = 6;
const shelf = `recent:${finder ? finder.querySelector("form").getAttribute("action") : ""}`;

function recent() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(shelf) || "[]");
    return Array.isArray(kept) ? kept.filter((one) => new URL(one.url, location.href).origin === location.origin) : [];
  } catch {
    return [];
  }
}

function remember(option) {
  const title = option.querySelector("bdi").textContent;
  const kind = option.closest("[role=group]").querySelector(".kind").textContent;
  const detail = option.dataset.detail || kind;
  const url = option.getAttribute("href");
  const kept = [{ title, detail, url }, ...recent().filter((one) => one.url !== url)].slice(0, KEPT);
  try {
    sessionStorage.setItem(shelf, JSON.stringify(kept));
  } catch {
    // The browser keeps nothing: the box works without recent entries.
  }
}

const options = () => [...found.querySelectorAll("[role=option]")];

function choose(option) {
  for (const one of options()) one.ariaSelected = String(one === option);
  if (!option) return box.removeAttribute("aria-activedescendant");
  box.setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

function listed() {
  const all = options();
  box.ariaExpanded = String(all.length > 0);
  finder.classList.toggle("none", all.length === 0 && box.value.trim() !== "");
  finder.querySelector("[data-said]").textContent = all.length || !box.value.trim() ? "" : finder.dataset.none;
  choose(all[0]);
}

function showRecent() {
  const group = document.createElement("div");
  const title = document.createElement("div");
  group.setAttribute("role", "group");
  group.setAttribute("aria-labelledby", "found-recent");
  title.className = "kind";
  title.id = "found-recent";
  title.textContent = finder.dataset.recent;
  group.append(title);
  for (const [number, one] of recent().entries()) {
    const option = document.createElement("a");
    option.setAttribute("role", "option");
    option.className = "hit";
    option.id = `found-recent-${number}`;
    option.tabIndex = -1;
    option.href = one.url;
    option.dataset.detail = one.detail;
    const name = document.createElement("bdi");
    name.textContent = one.title;
    const detail = document.createElement("small");
    detail.textContent = one.detail;
    option.append(name, detail);
    group.append(option);
  }
  found.replaceChildren(...(group.childElementCount > 1 ? [group] : []));
  listed();
}

function openFinder() {
  if (finder.open) return;
  box.value = "";
  showRecent();
  finder.showModal();
  box.focus();
}

function go(option) {
  remember(option);
  location.assign(option.href);
}

if (finder) {
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    openFinder();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-search]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openFinder();
  });
  finder.addEventListener("click", (event) => {
    if (event.target === finder || event.target.closest("[data-closes]")) finder.close();
    const option = event.target.closest("[role=option]");
    if (option) remember(option);
  });
  box.addEventListener("keydown", (event) => {
    const all = options();
    const now = all.findIndex((one) => one.ariaSelected === "true");
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && all.length) {
      event.preventDefault();
      choose(all[(now + by + all.length) % all.length]);
    }
  });
  finder.querySelector("form").addEventListener("submit", (event) => {
    // While an answer is awaited the list is of an older text: the page of the search takes it then.
    const option = options().find((one) => one.ariaSelected === "true");
    if (!option || found.dataset.text !== box.value) return;
    event.preventDefault();
    go(option);
  });
  box.addEventListener("input", () => {
    if (!box.value.trim()) showRecent();
    found.dataset.text = box.value.trim() ? "" : box.value;
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target !== found) return;
    // An answer that comes after the box was emptied is of no use any more.
    if (!box.value.trim()) event.detail.shouldSwap = false;
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target !== found) return;
    found.dataset.text = box.value;
    listed();
  });
  for (const form of document.querySelectorAll('form[action$="/sign-out"]')) {
    form.addEventListener("submit", () => sessionStorage.removeItem(shelf));
  }
}
