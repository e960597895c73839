import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionError, TimeoutError } from "../dist/index.js";
import { clientOf, json, refusal } from "./support.mjs";

const FILE = { file_id: "fil_1" };
const STORED = () => json(FILE, { status: 201 });

/** The file in a multipart body: its name, type and text. */
function partOf({ body, headers }) {
  const boundary = /^multipart\/form-data; boundary=(.+)$/.exec(headers.get("Content-Type"))[1];
  const [head, text] = body.slice(`--${boundary}\r\n`.length, -`\r\n--${boundary}--\r\n`.length).split("\r\n\r\n");
  assert.equal(body, `--${boundary}\r\n${head}\r\n\r\n${text}\r\n--${boundary}--\r\n`);
  return { head: head.split("\r\n"), text };
}

for (const [kind, content] of [
  ["bytes", new TextEncoder().encode("Hello")],
  ["a Blob", new Blob(["Hello"])],
  ["a stream", new Blob(["Hello"]).stream()],
  ["a text", "Hello"],
]) {
  test(`${kind} can be uploaded`, async () => {
    const { client, service } = clientOf([STORED()]);

    assert.deepEqual(await client.files.upload(content, {}, { filename: 'ä "b\\c".txt' }), FILE);

    const { head, text } = partOf(service.requests[0]);
    assert.equal(head[0], 'Content-Disposition: form-data; name="file"; filename="ä _b_c_.txt"');
    assert.equal(text, "Hello");
  });
}

test("a File brings its name and type", async () => {
  const { client, service } = clientOf([STORED()]);

  await client.files.upload(new File(["<svg/>"], "logo.svg", { type: "image/svg+xml" }));

  assert.deepEqual(partOf(service.requests[0]).head, [
    'Content-Disposition: form-data; name="file"; filename="logo.svg"',
    "Content-Type: image/svg+xml",
  ]);
});

test("options of an upload are parts before the file", async () => {
  const { client, service } = clientOf([STORED()]);

  await client.files.upload("Hello", { type: "document" });

  const [request] = service.requests;
  const body = await new Response(request.body).text();
  assert.match(body, /form-data; name="type"\r\n\r\ndocument\r\n--/);
  assert.equal(new URL(request.url).search, "");
});

test("a repeated upload sends the same bytes under the same key", async () => {
  const { client, service } = clientOf([refusal(503, "unavailable"), STORED()]);

  await client.files.upload(new Blob(["Hello"]).stream());

  const [first, second] = service.requests;
  assert.equal(first.body, second.body);
  assert.equal(first.headers.get("Idempotency-Key"), second.headers.get("Idempotency-Key"));
});

const csv = (body) =>
  new Response(body, {
    headers: { "Content-Type": "text/csv; charset=utf-8", "Content-Disposition": 'attachment; filename="people.csv"' },
  });

test("an export is read whole, or as it comes", async () => {
  const { client } = clientOf([refusal(503, "unavailable"), csv("id\nsub_1\n"), csv("id\nsub_1\n"), csv("id\nsub_1\n")]);

  const download = await client.subscribers.export();
  assert.equal(download.contentType, "text/csv; charset=utf-8");
  assert.equal(download.filename, "people.csv");
  assert.equal(await download.text(), "id\nsub_1\n");
  await assert.rejects(download.text(), /read once/);

  const chunks = [];
  for await (const chunk of await client.subscribers.export()) chunks.push(chunk);
  assert.equal(Buffer.concat(chunks).toString(), "id\nsub_1\n");

  const streamed = (await client.subscribers.export()).stream();
  assert.equal(await new Response(streamed).text(), "id\nsub_1\n");
});

test("a download that is refused is an error of the API", async () => {
  const { client } = clientOf([refusal(404, "not_found")]);

  await assert.rejects(client.files.download("fil_1"), { code: "not_found" });
});

/** A body of one chunk that then goes on as told, with the signal of its request. */
const begun = (then) => (request) =>
  csv(
    new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode("id\n"));
        request.signal.addEventListener("abort", () => controller.error(request.signal.reason), { once: true });
      },
      pull: then,
    }),
  );

test("a file that stalls ends after the time limit", async () => {
  const { client } = clientOf([begun(() => {})]);

  const download = await client.subscribers.export({}, { timeoutMs: 20 });

  await assert.rejects(download.text(), TimeoutError);
});

test("a file that breaks off is a broken connection", async () => {
  const { client } = clientOf([begun((controller) => controller.error(new TypeError("terminated")))]);

  const download = await client.subscribers.export();

  await assert.rejects(download.text(), ConnectionError);
});

test("abort ends a download within the file, and leaving the loop gives the connection back", async () => {
  const controller = new AbortController();
  const { client, service } = clientOf([begun(() => {}), begun(() => {})]);
  const aborted = await client.subscribers.export({}, { signal: controller.signal });
  const reading = aborted.text();
  controller.abort(new Error("the person left"));

  await assert.rejects(reading, /the person left/);
  for await (const chunk of await client.subscribers.export()) {
    assert.equal(chunk.length, 3);
    break;
  }
  assert.ok(service.requests[1].signal.aborted);
});
