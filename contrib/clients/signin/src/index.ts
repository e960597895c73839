export { MsgsvcSignIn } from "./element.js";
export { qrPath } from "./qr.js";
export { createSignIn } from "./sign-in.js";
export type { Begun, Messenger, Options, SignIn, State, Status, Told } from "./sign-in.js";
export type { Texts } from "./texts.js";

import { MsgsvcSignIn } from "./element.js";

// Not on a server, and not twice where two scripts of a page bring it.
if (globalThis.customElements && !customElements.get("msgsvc-signin")) {
  customElements.define("msgsvc-signin", MsgsvcSignIn);
}
