export { MsgsvcSignIn } from "./element.js";
export { qrPath } from "./qr.js";
export { createSignIn } from "./sign-in.js";
export type { Begun, Messenger, Options, SignIn, State, Status, Told } from "./sign-in.js";
export type { Texts } from "./texts.js";
