"use strict";

// The box above the boxes of a list checks those of the page; as soon as one is checked, what can be done with
// them opens. Without us it is opened by hand, and "all on this page" is one of its choices.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-bulk]");
  if (!form || event.target.type !== "checkbox") return;
  const boxes = [...form.querySelectorAll("input[name=id]")];
  if (event.target.matches("[data-all]")) for (const box of boxes) box.checked = event.target.checked;
  const count = boxes.filter((box) => box.checked).length;
  const all = form.querySelector("[data-all]");
  all.checked = count === boxes.length;
  all.indeterminate = count > 0 && !all.checked;
  if (count) {
    form.querySelector("details").open = true;
    form.querySelector("[name=who]").value = "chosen";
  }
});

// Without us it could do nothing.
function showAll() {
  for (const box of document.querySelectorAll("[data-all][hidden]")) box.hidden = false;
}
showAll();
document.addEventListener("htmx:afterSwap", showAll);
