/** A page of a list. `next_cursor` is null on the last one. */
export interface Page<T> {
  readonly data: readonly T[];
  readonly next_cursor: string | null;
}

/**
 * A list that is read page by page, as far as it is read.
 *
 *     for await (const subscriber of client.subscribers.list({ tag: "vip" })) ...
 */
export class Paginator<T> implements AsyncIterable<T> {
  readonly #load: (cursor: string | undefined) => Promise<Page<T>>;
  readonly #cursor: string | undefined;

  constructor(load: (cursor: string | undefined) => Promise<Page<T>>, cursor?: string) {
    this.#load = load;
    this.#cursor = cursor;
  }

  /** The first page alone, or that of the `cursor` which was given. */
  page(): Promise<Page<T>> {
    return this.#load(this.#cursor);
  }

  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let cursor = this.#cursor;
    for (;;) {
      const page = await this.#load(cursor);
      yield page;
      if (page.next_cursor === null) return;
      cursor = page.next_cursor;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }
}
