// The dialog that changes or deletes the person.

import { changePerson, deletePerson } from "./api.js";
import { byId, root, word } from "./page.js";

const dialog = byId("profile-dialog");
const form = byId("profile-form");
const problem = byId("profile-problem");
const remove = byId("delete-person");

function complain(error) {
  problem.textContent = word(error.code === "validation_failed" ? "badProfile" : "failed");
  problem.hidden = false;
}

byId("edit-profile").addEventListener("click", () => {
  byId("people-menu").hidePopover();
  problem.hidden = true;
  dialog.showModal();
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { name, username, lang } = Object.fromEntries(new FormData(form));
  try {
    await changePerson({ name, username, lang });
    // The page comes from the server in the person's language.
    location.reload();
  } catch (error) {
    complain(error);
  }
});

remove.addEventListener("click", async () => {
  if (!remove.dataset.asked) {
    remove.dataset.asked = "yes";
    remove.textContent = remove.dataset.again;
    return;
  }
  try {
    await deletePerson();
    location.assign(root);
  } catch (error) {
    complain(error);
  }
});
