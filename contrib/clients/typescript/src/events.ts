import type { EventData } from "./generated/events.js";
import { ApiError, TransportError } from "./errors.js";
import type { Page, Paginator } from "./pagination.js";
import { Resource } from "./resource.js";
import type { RequestOptions } from "./transport.js";

export type EventName = Extract<keyof EventData, string>;

/**
 * An event of the feed. `event` tells its `data` apart; events that are newer than this client come too, so have
 * a `default` where you `switch` over it.
 */
export type FeedEvent = {
  [Name in EventName]: { event_id: string; event: Name; data: EventData[Name] };
}[EventName];

/** Where `events.follow` keeps how far it has come, such as a row of your database. */
export interface CursorStore {
  /** What was saved last; null or undefined at the very start. */
  load(): Promise<string | null | undefined> | string | null | undefined;
  /**
   * Called at most once a second while events are handled, when all were, and when the loop is left. Some 30 bytes for
   * each event of the last minute, and 30 kB at most.
   */
  save(cursor: string): Promise<void> | void;
}

/** A cursor of this process alone. */
export class MemoryCursorStore implements CursorStore {
  cursor: string | undefined;

  load(): string | undefined {
    return this.cursor;
  }

  save(cursor: string): void {
    this.cursor = cursor;
  }
}

export interface FollowOptions extends RequestOptions {
  /** Without one, a `MemoryCursorStore`. */
  store?: CursorStore | undefined;
  /** Events of this name alone. */
  event?: EventName | undefined;
  /** With an empty store, starts with the oldest event that the service has, not with those to come. */
  fromBeginning?: boolean | undefined;
  /** Ends when everything was read, and does not wait for more. */
  untilIdle?: boolean | undefined;
  /** Milliseconds between requests once everything was read; 5,000 by default. */
  pollIntervalMs?: number | undefined;
}

/**
 * Milliseconds that a look goes back over what was seen: an event gets its id before its transaction is committed, so
 * that it may become visible after a younger one.
 */
const OVERLAP_MS = 60_000;

/** Ids remembered of that time, at most; they bound the size of a cursor. */
const MAX_SEEN = 1_000;

/** Milliseconds between two writes of the cursor while events are handled, at least. */
const SAVE_EVERY_MS = 1_000;

/** Milliseconds between attempts while the service is away. */
const MAX_OUTAGE_PAUSE_MS = 30_000;

const PAGE_SIZE = 100;

interface FeedQuery {
  limit?: number | null | undefined;
  event?: string | null | undefined;
  after_event_id?: string | null | undefined;
  cursor?: string | null | undefined;
}

/** `client.events` beside its generated operations. */
export abstract class EventFollowing extends Resource {
  abstract list(query?: FeedQuery, options?: RequestOptions): Paginator<FeedEvent>;

  /**
   * Events as they happen, oldest first, without an end.
   *
   *     for await (const event of client.events.follow({ store })) await handle(event);
   *
   * Each comes at least once. The cursor is saved a second after it was saved last, when all events were handled, and
   * when the loop is left; an event counts as handled when the next one is asked for. After a crash the events of the
   * last second come again: `event.event_id` tells.
   *
   * While the service is away, or limits requests, it keeps trying, with pauses of up to 30 seconds, and calls the
   * client's `onRetry`; other errors end it. Leave the loop, or abort `signal`, to stop. It throws a `TypeError` if
   * what the store holds is not a cursor.
   */
  async *follow(options: FollowOptions = {}): AsyncGenerator<FeedEvent, void, undefined> {
    const { store = new MemoryCursorStore(), event: name, fromBeginning, untilIdle, ...rest } = options;
    const { pollIntervalMs = 5_000, ...request } = rest;
    const { clock } = this.transport;
    const saved = await store.load();
    const position = typeof saved === "string" ? Position.parse(saved) : new Position();
    if (typeof saved !== "string") {
      if (!fromBeginning) await this.#begin(position, name, request);
      await store.save(position.cursor());
    }
    let savedAt = clock.now();
    let seenAt = savedAt;
    let isSaved = true;
    try {
      for (;;) {
        if (clock.now() - seenAt >= OVERLAP_MS) position.settleAll();
        let after: string | undefined = position.after;
        while (after !== undefined) {
          const page: Page<FeedEvent> = await this.#page({ after_event_id: after, limit: PAGE_SIZE, event: name }, request);
          for (const event of page.data) {
            if (position.has(event.event_id)) continue;
            yield event;
            position.add(event);
            isSaved = false;
            seenAt = clock.now();
            if (seenAt - savedAt >= SAVE_EVERY_MS) {
              await store.save(position.cursor());
              savedAt = seenAt;
              isSaved = true;
            }
          }
          after = page.next_cursor === null ? undefined : page.data.at(-1)?.event_id;
        }
        position.settle();
        if (!isSaved) {
          await store.save(position.cursor());
          savedAt = clock.now();
          isSaved = true;
        }
        if (untilIdle) return;
        await clock.sleep(pollIntervalMs, options.signal);
      }
    } finally {
      if (!isSaved) await store.save(position.cursor());
    }
  }

  /** The last minute counts as seen, and is looked at again: what is committed late is yet to come. */
  async #begin(position: Position, name: EventName | undefined, options: RequestOptions): Promise<void> {
    let cursor: string | undefined;
    do {
      const page: Page<FeedEvent> = await this.#page({ limit: PAGE_SIZE, event: name, cursor }, options);
      for (const event of page.data) position.add(event);
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined && position.isWithinOverlap && position.size < MAX_SEEN);
    if (cursor !== undefined) position.beginAtOldest();
  }

  /** The first page of a query, whenever the service is there. */
  async #page(query: FeedQuery, options: RequestOptions): Promise<Page<FeedEvent>> {
    const { clock } = this.transport;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.list(query, options).page();
      } catch (error) {
        const passes = (error instanceof TransportError || error instanceof ApiError) && error.retryable;
        if (!passes) throw error;
        const asked = error instanceof ApiError ? (error.retryAfterS ?? 0) * 1000 : 0;
        const delayMs = Math.max(asked, Math.min(1_000 * 2 ** (attempt - 1), MAX_OUTAGE_PAUSE_MS));
        this.transport.reportRetry({ error, attempt, delayMs });
        await clock.sleep(delayMs, options.signal);
      }
    }
  }
}

/**
 * How far a reader has come: the id up to which everything is settled, and the ids seen behind it.
 *
 * As text it is a JSON object, the same in all clients: `{"after":"evt_1","newest_ms":0,"seen":["evt_2"]}`.
 */
class Position {
  /** Behind this event the next look begins; empty: with the oldest. */
  after = "";
  /** When the youngest event that was seen occurred. */
  #newestMs = 0;
  /** When each of the others occurred, by id. */
  readonly #seen = new Map<string, number>();

  static parse(text: string): Position {
    const { after, newest_ms: newestMs, seen } = fieldsOf(text);
    if (typeof after !== "string" || !Number.isFinite(newestMs) || !Array.isArray(seen)) {
      throw new TypeError("the store of events.follow holds no cursor; mend it, or empty it to begin anew");
    }
    const position = new Position();
    position.after = after;
    position.#newestMs = newestMs as number;
    // Without a time for each, so that it is short: they are remembered a little longer than needed.
    for (const id of seen) position.#seen.set(String(id), position.#newestMs);
    return position;
  }

  get size(): number {
    return this.#seen.size;
  }

  has(id: string): boolean {
    return this.#seen.has(id);
  }

  add(event: FeedEvent): void {
    const { occurred_at: occurredAt }: { occurred_at?: string } = event.data;
    const atMs = Date.parse(occurredAt ?? "");
    this.#newestMs = Math.max(this.#newestMs, atMs || 0);
    this.#seen.set(event.event_id, atMs || this.#newestMs);
  }

  /** Whether all that was seen occurred within a minute. */
  get isWithinOverlap(): boolean {
    return [...this.#seen.values()].every((atMs) => atMs >= this.#newestMs - OVERLAP_MS);
  }

  /** For events that were read from the youngest on, where older ones are not to come. */
  beginAtOldest(): void {
    this.#forget([...this.#seen.keys()].sort().slice(0, 1));
  }

  /** For a feed in which nothing new was seen for a minute. */
  settleAll(): void {
    this.#forget([...this.#seen.keys()].sort());
  }

  /** Forgets what occurred longer than a minute before the youngest, and what is too much. */
  settle(): void {
    const ids = [...this.#seen.keys()].sort();
    const least = Math.max(0, ids.length - MAX_SEEN);
    const startMs = this.#newestMs - OVERLAP_MS;
    const kept = ids.findIndex((id, index) => index >= least && (this.#seen.get(id) ?? 0) >= startMs);
    this.#forget(kept === -1 ? ids : ids.slice(0, kept));
  }

  cursor(): string {
    this.settle();
    return JSON.stringify({ after: this.after, newest_ms: this.#newestMs, seen: [...this.#seen.keys()].sort() });
  }

  #forget(settled: readonly string[]): void {
    for (const id of settled) this.#seen.delete(id);
    const last = settled.at(-1);
    // One that came late may be below what was settled before.
    if (last !== undefined && last > this.after) this.after = last;
  }
}

function fieldsOf(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    // `Position.parse` says what is wrong.
    return {};
  }
}
