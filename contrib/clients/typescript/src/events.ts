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
  /** Called after an event was handled. At most some 6 kB. */
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

/** Milliseconds for which a request may take to commit after it gave its event an id. */
const SETTLE_MS = 60_000;

/** Ids that are remembered, which bounds the size of a cursor. */
const MAX_RECENT = 200;

/** Milliseconds between attempts while the service is away. */
const MAX_OUTAGE_PAUSE_MS = 30_000;

const PAGE_SIZE = 100;

interface FeedQuery {
  limit?: number | null | undefined;
  event?: string | null | undefined;
  after_event_id?: string | null | undefined;
}

/** `client.events` beside its generated operations. */
export abstract class EventFollowing extends Resource {
  abstract list(query?: FeedQuery, options?: RequestOptions): Paginator<FeedEvent>;

  /**
   * Events as they happen, oldest first, without an end. The cursor is saved when the next event is asked for,
   * so an event that was not handled to its end comes again after a restart: handle each id once.
   *
   *     for await (const event of client.events.follow({ store })) await handle(event);
   *
   * While the service is away it keeps trying (and calls the client's `onRetry`); other errors end it. Leave the
   * loop, or abort `signal`, to stop.
   */
  async *follow(options: FollowOptions = {}): AsyncGenerator<FeedEvent, void, undefined> {
    const { store = new MemoryCursorStore(), event: name, fromBeginning, untilIdle, ...rest } = options;
    const { pollIntervalMs = 5_000, ...request } = rest;
    const { clock } = this.transport;
    const saved = await store.load();
    const place = saved ? Place.read(saved, clock.now()) : new Place(fromBeginning ? "" : await this.#newest(request));
    if (!saved) await store.save(place.cursor());
    for (;;) {
      let after: string | undefined = place.after;
      while (after !== undefined) {
        const page: Page<FeedEvent> = await this.#page({ after_event_id: after, limit: PAGE_SIZE, event: name }, request);
        for (const event of page.data) {
          if (place.has(event.event_id)) continue;
          yield event;
          place.add(event.event_id, clock.now());
          await store.save(place.cursor());
        }
        after = page.next_cursor === null ? undefined : page.data.at(-1)?.event_id;
      }
      if (untilIdle) return;
      await clock.sleep(pollIntervalMs, options.signal);
    }
  }

  async #newest(options: RequestOptions): Promise<string> {
    const page = await this.#page({ limit: 1 }, options);
    return page.data[0]?.event_id ?? "";
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
 * How far a reader has come: the id up to which everything is settled, and the ids seen beyond it.
 *
 * Requests that run at once may commit in another order than that of their events' ids. So what was seen within the
 * last minute is read again, and what is known of it skipped.
 */
class Place {
  after: string;
  /** Id → when it was seen. */
  readonly #recent = new Map<string, number>();

  constructor(after: string) {
    this.after = after;
  }

  static read(cursor: string, now: number): Place {
    const [after = "", ...recent] = cursor.split(",");
    const place = new Place(after);
    for (const id of recent) place.#recent.set(id, now);
    return place;
  }

  has(id: string): boolean {
    return this.#recent.has(id);
  }

  add(id: string, now: number): void {
    this.#recent.set(id, now);
    for (const [oldest, seen] of this.#recent) {
      if (now - seen < SETTLE_MS && this.#recent.size <= MAX_RECENT) break;
      this.#recent.delete(oldest);
      // Ids sort by their time; one that came late may be below what is settled already.
      if (oldest > this.after) this.after = oldest;
    }
  }

  cursor(): string {
    return [this.after, ...this.#recent.keys()].join(",");
  }
}
