// The dialog that opens a start link, pasted or scanned.

import { openLink } from "./api.js";
import { byId, word } from "./page.js";
import { Scanner } from "./scanner.js";

const dialog = byId("link-dialog");
const field = byId("link-text");
const problem = byId("link-problem");

/** Opens a link as this person; `onOpened(channel)` is called when the bot was started. */
export async function follow(link, onOpened, onProblem) {
  try {
    const opened = await openLink(link);
    onOpened(opened.channel);
  } catch (error) {
    const known = { validation_failed: "noStartLink", not_found: "noBot" };
    onProblem(word(known[error.code] ?? "failed"));
  }
}

export function setUpLinkDialog(onOpened) {
  const go = (link) => follow(link, (channel) => { dialog.close(); onOpened(channel); }, complain);
  byId("open-link").addEventListener("click", () => {
    field.value = "";
    complain("");
    dialog.showModal();
    field.focus();
  });
  byId("link-form").addEventListener("submit", (event) => {
    event.preventDefault();
    go(field.value);
  });
  setUpScanning(go);
}

function complain(text) {
  problem.textContent = text;
  problem.hidden = text === "";
  field.toggleAttribute("aria-invalid", text !== "");
}

async function setUpScanning(go) {
  const scanner = await Scanner.make(byId("scan-video"));
  if (!scanner) return;
  byId("scan-unable").hidden = true;
  byId("scan-actions").hidden = false;
  byId("scan-camera").hidden = !scanner.hasCamera;
  dialog.addEventListener("close", () => scanner.stop());
  byId("scan-camera").addEventListener("click", async () => {
    try {
      const link = await scanner.atCamera();
      if (link) go(link);
    } catch {
      scanner.stop();
      complain(word("noCamera"));
    }
  });
  byId("scan-file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    const link = file && (await scanner.inPicture(file).catch(() => null));
    event.target.value = "";
    if (link) go(link);
    else complain(word("noCode"));
  });
}
