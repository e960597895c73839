// Holds the verifier to the shared vectors: `node run_vectors.mjs path/to/webhooks.json`.

import { readFileSync } from "node:fs";
import { InvalidWebhook, verify, verifyStandard } from "./msgsvc-webhook.mjs";

const vectors = JSON.parse(readFileSync(process.argv[2], "utf8"));

function accepts(check, { headers, body, secrets }) {
  try {
    check(headers, Buffer.from(body, "base64"), secrets);
    return true;
  } catch (error) {
    if (error instanceof InvalidWebhook || error instanceof TypeError) return false;
    throw error;
  }
}

const cases = [
  ...vectors.signature.map((one) => [verify, one]),
  ...vectors.standard.map((one) => [verifyStandard, one]),
];
const wrong = cases.filter(([check, one]) => accepts(check, one) !== one.valid);
for (const [, one] of wrong) console.log(`WRONG: ${one.about}`);
if (wrong.length === 0) console.log(`${cases.length} cases, all right`);
process.exitCode = wrong.length ? 1 : 0;
