// A program of somebody who uses the client, checked with all that `tsc --strict` has.

import {
  ApiError,
  Client,
  type CursorStore,
  type FeedEvent,
  type Message,
  NotFoundError,
  openWebhook,
  OtpExpiredError,
  type SendBody,
  type Subscriber,
  TransportError,
} from "@msgsvc/client";

const client = new Client({ baseUrl: "https://msgsvc.example.com", apiKey: "msk_...", maxAttempts: 2 });

export async function greet(externalId: string): Promise<Message | null> {
  const body: SendBody = { external_id: externalId, text: "Hello", buttons: [[{ text: "Shop", url: "https://shop.example" }]] };
  try {
    const { message_id } = await client.messages.send(body, { idempotencyKey: `greeting-${externalId}` });
    return await client.messages.get(message_id);
  } catch (error) {
    if (error instanceof NotFoundError) return null;
    if (error instanceof OtpExpiredError) throw new Error(error.code satisfies "otp_expired");
    if (error instanceof ApiError) console.error(error.code, error.retryAfterS, error.requestId);
    if (error instanceof TransportError) console.error(error.path);
    throw error;
  }
}

export async function people(): Promise<Subscriber[]> {
  const found: Subscriber[] = [];
  for await (const subscriber of client.subscribers.list({ tag: "vip" })) found.push(subscriber);
  return found;
}

export async function signIn(sessionId: string): Promise<string | undefined> {
  const answer = await client.auth.sessions.wait(sessionId, { signal: AbortSignal.timeout(60_000) });
  return answer.status === "confirmed" ? answer.code ?? undefined : undefined;
}

export async function hook(request: Request): Promise<Response> {
  const delivery = await openWebhook(request.headers, await request.arrayBuffer(), ["whsec_...", "whsec_..."]);
  switch (delivery.event) {
    case "auth.completed":
      return new Response(delivery.data.state);
    case "ticket.csat_received":
      return new Response(String(delivery.data.score.toFixed()));
    default:
      return new Response(delivery.deliveryId);
  }
}

export async function follow(store: CursorStore, handle: (event: FeedEvent) => Promise<void>): Promise<void> {
  for await (const event of client.events.follow({ store })) {
    if (event.event === "delivery.failed") console.log(event.data.reason, event.data.should_unsubscribe);
    await handle(event);
  }
}

// What does not exist is refused.
// @ts-expect-error a mistyped field
void client.messages.send({ external_id: "ann-1", test: "Hello" });
// @ts-expect-error a field that is required
void client.auth.verify({});
