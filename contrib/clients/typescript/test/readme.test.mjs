/** The programs of the README that talk to the service, run as printed. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { Client } from "../dist/index.js";
import { Msgsvc } from "./msgsvc.mjs";

const FOLDER = new URL("../build/readme/", import.meta.url);

let msgsvc;
let programs;

before(async () => {
  msgsvc = await Msgsvc.start();
  const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
  const sections = readme.split(/^## /m).map((section) => [section.split("\n", 1)[0], section]);
  programs = new Map(sections.map(([title, section]) => [title, /^```ts(?: node)?\n(.*?)^```$/ms.exec(section)?.[1]]));
  await mkdir(FOLDER, { recursive: true });
});

after(async () => {
  await msgsvc.stop();
  await rm(FOLDER, { recursive: true });
});

/** Runs the program of a section; `onLine` sees what it prints. The address and the key that it names are the service's. */
async function printed(title, onLine = () => {}) {
  const file = new URL(`${title.replaceAll(" ", "-")}.mjs`, FOLDER);
  const options = JSON.stringify(msgsvc.options);
  await writeFile(
    new URL("service.mjs", FOLDER),
    `const { baseUrl, apiKey } = ${options};
    const { fetch } = globalThis;
    globalThis.fetch = (url, init) =>
      fetch(url.replace("https://msgsvc.example.com", baseUrl), {
        ...init,
        headers: { ...init.headers, Authorization: "Bearer " + apiKey },
      });`,
  );
  await writeFile(file, programs.get(title));
  const started = spawn(process.execPath, ["--import", "./service.mjs", file.pathname], {
    cwd: FOLDER,
    stdio: ["ignore", "pipe", "inherit"],
    timeout: 60_000,
  });
  const ended = once(started, "exit");
  const lines = [];
  for await (const line of createInterface(started.stdout)) {
    lines.push(line);
    await onLine(line);
  }
  assert.deepEqual(await ended, [0, null]);
  return lines;
}

test("a subscriber gets a message and a file, and is in lists", async () => {
  const client = new Client(msgsvc.options);
  const ann = await msgsvc.person("Ann");
  const { links } = await client.subscribers.createLink({ external_id: "ann-1", tags: ["vip"] });
  await ann.open(links.messenger_a);
  await writeFile(new URL("menu.pdf", FOLDER), "%PDF-1.4\n%%EOF\n");

  const [status] = await printed("Begin");
  await printed("Files");
  const listed = await printed("Lists");

  assert.ok(["queued", "sending", "sent"].includes(status));
  assert.deepEqual(listed, ["Ann", "1 null"]);
  assert.match(await readFile(new URL("subscribers.csv", FOLDER), "utf8"), /sub_.*Ann/);
});

test("a person signs in", async () => {
  const ben = await msgsvc.person("Ben");

  const lines = await printed("Sign somebody in", async (line) => {
    const link = /messenger_a: '([^']+)'/.exec(line)?.[1];
    if (!link) return;
    await ben.open(link);
    await ben.press("Yes");
  });

  assert.equal(lines.at(-1), "Hello Ben");
});
