/**
 * A service for tests of your own code, with people who use its messengers, and a clock to move. Copy this file.
 *
 * It needs `pip install "msgsvc-core[testing]"` on the machine; all is in memory, and gone at the end.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export class Msgsvc {
  #process;
  #facts;

  /** Starts one, which takes about three seconds: share it between the tests of a file. */
  static async start(command = process.env.MSGSVC ?? "msgsvc") {
    const started = spawn(command, ["serve", "--ephemeral", "--port", "0", "--json"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(started, "exit").then(([code]) => {
      throw new Error(`${command} serve --ephemeral ended with ${code}`);
    });
    const lines = once(createInterface(started.stdout), "line");
    const [line] = await Promise.race([lines, ended]);
    // From here on its end is no failure.
    ended.catch(() => {});
    return new Msgsvc(started, JSON.parse(line));
  }

  constructor(started, facts) {
    this.#process = started;
    this.#facts = facts;
  }

  /** What `new Client()` takes. */
  get options() {
    return { baseUrl: this.#facts.base_url, apiKey: this.#facts.api_key };
  }

  async stop() {
    const ended = once(this.#process, "exit");
    this.#process.kill();
    await ended;
  }

  /** Moves the clock forward; what is due by then is done when this returns. */
  async advance(seconds) {
    await this.ask("POST", "/sandbox/api/clock", { advance_s: seconds });
  }

  /** Somebody with both messengers. */
  async person(name) {
    const { person_id } = await this.ask("POST", "/sandbox/api/people", { name });
    return new Person(this, person_id);
  }

  async ask(method, path, body) {
    const answer = await fetch(this.#facts.base_url + path, {
      method,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${text}`);
    return text && JSON.parse(text);
  }
}

class Person {
  #msgsvc;
  #path;

  constructor(msgsvc, personId) {
    this.#msgsvc = msgsvc;
    this.#path = `/sandbox/api/people/${personId}`;
  }

  /** Opens a link to a bot, as by a click or with the camera. */
  async open(link) {
    await this.#msgsvc.ask("POST", `${this.#path}/open`, { link });
  }

  /** The texts that a bot has sent, the oldest first. */
  async texts(channel = "messenger_a") {
    return (await this.#messages(channel)).map((message) => message.spans.map((span) => span.text).join(""));
  }

  /** Presses the newest button of this text; waits for it up to ten seconds. */
  async press(text, channel = "messenger_a") {
    for (let wait = 0; wait < 200; wait += 1) {
      for (const { ref, buttons } of (await this.#messages(channel)).toReversed()) {
        const row = buttons.findIndex((each) => each.some((button) => button.text === text));
        if (row < 0) continue;
        const column = buttons[row].findIndex((button) => button.text === text);
        await this.#msgsvc.ask("POST", `${this.#path}/chats/${channel}/messages/${ref}/press`, { row, column });
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`no button "${text}"; the messages: ${JSON.stringify(await this.texts(channel))}`);
  }

  async #messages(channel) {
    const { messages } = await this.#msgsvc.ask("GET", `${this.#path}/state`);
    const found = messages.filter((each) => each.channel === channel && each.author === "bot" && !each.deleted);
    return found.sort((one, other) => Number(one.ref) - Number(other.ref));
  }
}
