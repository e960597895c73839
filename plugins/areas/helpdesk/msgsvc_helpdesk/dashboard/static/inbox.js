"use strict";

// What somebody writes stays while they do something else with the ticket, e.g. give it to a colleague.
const drafts = document.querySelectorAll("textarea[data-draft]");
for (const box of drafts) {
  const key = `msgsvc draft ${box.dataset.draft}`;
  if (box.value === "") box.value = sessionStorage.getItem(key) || "";
  box.addEventListener("input", () => sessionStorage.setItem(key, box.value));
  box.form.addEventListener("submit", () => sessionStorage.removeItem(key));
}

// A canned answer goes where the cursor is.
document.addEventListener("htmx:afterSwap", () => {
  const found = document.querySelector("#canned-text[data-text]");
  const box = document.querySelector("#f-text");
  if (!found || !box) return;
  box.setRangeText(found.dataset.text, box.selectionStart, box.selectionEnd, "end");
  document.querySelector("#f-format").value = found.dataset.format;
  found.removeAttribute("data-text");
  box.dispatchEvent(new Event("input"));
  box.focus();
});

// Nobody looks: nothing is asked for until they do.
document.addEventListener("htmx:beforeRequest", (event) => {
  const asks = event.detail.elt.getAttribute("hx-trigger") || "";
  if (document.hidden && asks.startsWith("every")) event.preventDefault();
});

// The newest words are in sight, as long as nobody has scrolled up to read older ones.
const talk = () => document.querySelector("#talk");
const isAtEnd = (box) => box.scrollHeight - box.scrollTop - box.clientHeight < 80;
let atEnd = true;
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "talk") atEnd = isAtEnd(talk());
});
document.addEventListener("htmx:afterSettle", () => {
  if (talk() && atEnd) talk().scrollTop = talk().scrollHeight;
});
if (talk()) talk().scrollTop = talk().scrollHeight;

// Ctrl+Enter sends; a slash in an empty reply opens the canned answers.
document.addEventListener("keydown", (event) => {
  const box = event.target;
  if (!(box instanceof HTMLTextAreaElement) || !box.closest(".composer")) return;
  const canned = document.querySelector("#by-canned");
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    box.form.requestSubmit(box.form.querySelector("button:not([form])"));
  } else if (event.key === "/" && box.id === "f-text" && box.value === "" && canned) {
    event.preventDefault();
    canned.focus();
    try {
      canned.showPicker();
    } catch {
      // The list can still be opened by its own key.
    }
  }
});
document.querySelector("#by-canned")?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  event.target.form.requestSubmit();
});

// The part that is chosen is where one writes.
document.querySelector(".modes")?.addEventListener("change", (event) => {
  document.querySelector(event.target.value === "note" ? "#f-note" : "#f-text").focus();
});

// Files that are dropped on a reply or pasted into it are added to those that are chosen.
const composer = document.querySelector(".composer");
const chosen = document.querySelector("#f-files");
function addFiles(event, from) {
  if (!chosen || !from || from.files.length === 0) return;
  event.preventDefault();
  const all = new DataTransfer();
  for (const file of [...chosen.files, ...from.files]) all.items.add(file);
  chosen.files = all.files;
  nameChosen();
}
function nameChosen() {
  document.querySelector("#chosen-files").textContent = [...chosen.files].map((file) => file.name).join(", ");
}
chosen?.addEventListener("change", nameChosen);
if (composer && chosen) {
  composer.addEventListener("paste", (event) => addFiles(event, event.clipboardData));
  composer.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    composer.classList.add("dropping");
  });
  for (const name of ["dragleave", "drop"]) {
    composer.addEventListener(name, () => composer.classList.remove("dropping"));
  }
  composer.addEventListener("drop", (event) => addFiles(event, event.dataTransfer));
}

// Assignee and priority are saved as soon as they are chosen; by keys once the choice stays, or the focus leaves.
const SETTLES_MS = 700;
for (const form of document.querySelectorAll("form.saves")) {
  const select = form.querySelector("select");
  let saved = select.value;
  let timer = 0;
  const save = () => {
    clearTimeout(timer);
    timer = 0;
    if (select.value !== saved) form.dispatchEvent(new Event("save"));
  };
  select.addEventListener("change", () => {
    clearTimeout(timer);
    timer = setTimeout(save, SETTLES_MS);
  });
  select.addEventListener("blur", () => timer && save());
  // What was refused is not shown as if it were so, and said here: the next poll that succeeds empties `#problem`.
  form.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) saved = event.detail.requestConfig.formData.get(select.name);
    else {
      if (!timer) select.value = saved;
      const status = document.querySelector("#saved");
      status.textContent = status.dataset.failed;
    }
  });
}

// The other ways to send close with Escape, which gives the focus back, and at a click beside them.
const ways = document.querySelector(".other-ways");
ways?.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !ways.open) return;
  ways.open = false;
  ways.querySelector("summary").focus();
});
document.addEventListener("click", (event) => {
  if (ways?.open && !ways.contains(event.target)) ways.open = false;
});

// A ticket that is opened finds the list where it was; a list of other filters begins at its top.
const list = document.querySelector(".desk .list");
if (list) {
  const asked = new URLSearchParams(location.search);
  const filters = ["status", "who", "priority", "tag", "due", "sort"].map((name) => asked.get(name) || "");
  if (filters[0] === "open") filters[0] = "";
  const key = `msgsvc list ${JSON.stringify(filters)}`;
  list.scrollTop = Number(sessionStorage.getItem(key));
  addEventListener("pagehide", () => sessionStorage.setItem(key, list.scrollTop));
}
