// How the scripts talk with the test that runs them: see programs.py.

import { createInterface } from "node:readline";

export const config = JSON.parse(process.argv[2]);

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export async function ask(name, values = {}) {
  process.stdout.write(JSON.stringify({ ask: name, ...values }) + "\n");
  return JSON.parse((await lines.next()).value);
}

// Runs the scenario that the configuration names, and tells its result.
export async function play(scenarios) {
  try {
    const result = await scenarios[config.scenario]();
    process.stdout.write(JSON.stringify({ result }) + "\n", () => process.exit(0));
  } catch (error) {
    console.error(error, error.cause ?? "");
    process.exit(1);
  }
}
