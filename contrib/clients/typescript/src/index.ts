export { Client, type ClientOptions } from "./client.js";
export type { Clock } from "./clock.js";
export type { Download } from "./download.js";
export * from "./errors.js";
export {
  type CursorStore,
  type EventName,
  type FeedEvent,
  type FollowOptions,
  MemoryCursorStore,
} from "./events.js";
export * from "./generated/errors.js";
export type * from "./generated/events.js";
export type * from "./generated/resources.js";
export type * from "./generated/types.js";
export type { Page, Paginator } from "./pagination.js";
export type { FileContent, UploadOptions } from "./resource.js";
export type { WaitOptions } from "./sessions.js";
export type { PostOptions, RequestOptions, ResponseInfo, RetryInfo } from "./transport.js";
export { VERSION } from "./version.js";
export {
  openWebhook,
  verifyStandardWebhook,
  verifyWebhook,
  type WebhookBody,
  type WebhookDelivery,
  type WebhookHeaders,
  type WebhookOptions,
} from "./webhooks.js";
