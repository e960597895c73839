import { startTimer } from "./clock.js";
import { ConnectionError, TimeoutError } from "./errors.js";

interface Source {
  readonly abort: AbortController;
  readonly signal: AbortSignal | undefined;
  readonly idleMs: number;
  readonly method: string;
  readonly path: string;
}

/**
 * The body of an answer that is a file, read once: as it comes by `stream()` or `for await`, or whole.
 *
 *     for await (const chunk of await client.subscribers.export()) await file.write(chunk);
 */
export class Download implements AsyncIterable<Uint8Array<ArrayBuffer>> {
  readonly contentType: string;
  /** From `Content-Disposition`; null if the answer names none. */
  readonly filename: string | null;
  /** Bytes; null if the service does not know it beforehand. */
  readonly size: number | null;
  readonly #response: Response;
  readonly #source: Source;

  constructor(response: Response, source: Source) {
    const length = response.headers.get("Content-Length");
    this.contentType = response.headers.get("Content-Type") ?? "application/octet-stream";
    this.filename = filenameOf(response.headers.get("Content-Disposition") ?? "");
    this.size = length === null ? null : Number(length);
    this.#response = response;
    this.#source = source;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
    const { abort, signal } = this.#source;
    if (this.#response.bodyUsed) throw new TypeError("a download is read once");
    if (!this.#response.body) return;
    const reader = this.#response.body.getReader();
    const whenAborted = (): void => abort.abort(signal?.reason);
    signal?.addEventListener("abort", whenAborted, { once: true });
    let whole = false;
    try {
      signal?.throwIfAborted();
      for (;;) {
        const { done, value } = await this.#read(reader);
        if (done) break;
        yield value;
      }
      whole = true;
    } finally {
      signal?.removeEventListener("abort", whenAborted);
      // Whoever stops reading needs the rest no more: the connection is given back.
      if (!whole) abort.abort();
    }
  }

  stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    const chunks = this[Symbol.asyncIterator]();
    return new ReadableStream({
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks.return();
      },
    });
  }

  async blob(): Promise<Blob> {
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    for await (const chunk of this) chunks.push(chunk);
    return new Blob(chunks, { type: this.contentType });
  }

  async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await (await this.blob()).arrayBuffer());
  }

  /** As UTF-8. */
  async text(): Promise<string> {
    return (await this.blob()).text();
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>) {
    const { abort, idleMs, method, path } = this.#source;
    const expire = (): void => {
      abort.abort(new TimeoutError(`nothing more of the file within ${idleMs} ms`, method, path));
    };
    const timer = startTimer(expire, idleMs);
    try {
      return await reader.read();
    } catch (error) {
      if (abort.signal.aborted) throw abort.signal.reason;
      throw new ConnectionError("the connection broke within the file", method, path, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }
}

function filenameOf(disposition: string): string | null {
  const encoded = /filename\*=UTF-8''([^;]+)/i.exec(disposition)?.[1];
  if (encoded) return decodeURIComponent(encoded);
  return /filename="([^"]*)"/i.exec(disposition)?.[1] ?? null;
}
