import type { PostOptions, Transport } from "./transport.js";

/** A group of operations, such as `client.auth`. The generated ones extend it. */
export class Resource {
  protected readonly transport: Transport;

  constructor(transport: Transport) {
    this.transport = transport;
  }
}

/** What can be uploaded. A stream is read whole first, so that it can be sent again. */
export type FileContent = Blob | Uint8Array<ArrayBuffer> | ArrayBuffer | ReadableStream<Uint8Array<ArrayBuffer>> | string;

/** Options of an upload. */
export interface UploadOptions extends PostOptions {
  /** By default that of a `File`, else `file`. */
  filename?: string | undefined;
}

/** The file of a multipart body, and its other parts. */
export async function filePart(field: string, content: FileContent, options?: UploadOptions, parts?: object) {
  const blob = content instanceof Blob ? content : await new Response(content).blob();
  const named = typeof File !== "undefined" && content instanceof File ? content.name : "";
  return { field, content: blob, name: options?.filename ?? (named || "file"), parts };
}
