// npm `openid-client` in each of its flows.

import * as oidc from "openid-client";
import { ask, config, play } from "./conversation.mjs";

const secure = { execute: [oidc.allowInsecureRequests, oidc.enableNonRepudiationChecks] };

async function authentication() {
  switch (config.auth_method) {
    case "client_secret_basic": return oidc.ClientSecretBasic(config.client_secret);
    case "client_secret_post": return oidc.ClientSecretPost(config.client_secret);
    case "none": return oidc.None();
    case "private_key_jwt": {
      const { kid, ...jwk } = config.private_key;
      const algorithm = { name: "ECDSA", namedCurve: "P-256" };
      return oidc.PrivateKeyJwt({ key: await crypto.subtle.importKey("jwk", jwk, algorithm, false, ["sign"]), kid });
    }
  }
  throw new Error(`unknown: ${config.auth_method}`);
}

async function discovered() {
  return oidc.discovery(new URL(config.issuer), config.client_id, undefined, await authentication(), {
    ...secure, algorithm: config.algorithm ?? "oidc",
  });
}

// A sign-in with everything that this library checks: state, nonce, iss, PKCE, auth_time, and the signature.
async function signIn(rp, extra = {}, pushed = false) {
  const verifier = oidc.randomPKCECodeVerifier();
  const state = oidc.randomState();
  const nonce = oidc.randomNonce();
  const parameters = {
    redirect_uri: config.redirect_uri, scope: config.scope, state, nonce,
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256",
    ...(config.scope.includes("offline_access") ? { prompt: "consent" } : {}), ...extra,
  };
  const url = pushed ? await oidc.buildAuthorizationUrlWithPAR(rp, parameters) : oidc.buildAuthorizationUrl(rp, parameters);
  const answer = new URL(await ask("sign_in", { url: url.href }));
  const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true };
  if (extra.max_age) checks.maxAge = Number(extra.max_age);
  return { url: url.href, tokens: await oidc.authorizationCodeGrant(rp, answer, checks) };
}

// Has the person asked, and waits for their answer.
async function startBackchannel(rp, extra = {}) {
  const binding_message = `Payment ${crypto.randomUUID()}`;
  const started = await oidc.initiateBackchannelAuthentication(rp, {
    scope: config.scope, login_hint: config.login_hint, binding_message, ...extra,
  });
  await ask("ciba", { ...started, binding_message });
  return started;
}

const codeOf = async (promise) => {
  try { await promise; } catch (error) { return error.error ?? String(error); }
  return null;
};

await play({
  async code() {
    const rp = await discovered();
    const { tokens } = await signIn(rp, config.extra);
    const claims = tokens.claims();
    return { tokens, claims, user_info: await oidc.fetchUserInfo(rp, tokens.access_token, claims.sub) };
  },
  async cancelled() {
    return codeOf(signIn(await discovered()));
  },
  async refresh() {
    const rp = await discovered();
    const { tokens } = await signIn(rp);
    const first = await oidc.refreshTokenGrant(rp, tokens.refresh_token);
    const second = await oidc.refreshTokenGrant(rp, first.refresh_token);
    const user_info = await oidc.fetchUserInfo(rp, second.access_token, tokens.claims().sub);
    return { tokens: [tokens, first, second], claims: second.claims() ?? null, user_info };
  },
  async revocation() {
    const rp = await discovered();
    const { tokens } = await signIn(rp);
    const before = await oidc.tokenIntrospection(rp, tokens.refresh_token);
    const access = await oidc.tokenIntrospection(rp, tokens.access_token);
    await oidc.tokenRevocation(rp, tokens.refresh_token, { token_type_hint: "refresh_token" });
    const after = await oidc.tokenIntrospection(rp, tokens.refresh_token);
    return { before, access, after, refused: await codeOf(oidc.refreshTokenGrant(rp, tokens.refresh_token)) };
  },
  async pushed() {
    const rp = await discovered();
    const { url, tokens } = await signIn(rp, {}, true);
    return { url, claims: tokens.claims() };
  },
  async device() {
    const rp = await discovered();
    const started = await oidc.initiateDeviceAuthorization(rp, { scope: config.scope });
    await ask("device", started);
    const tokens = await oidc.pollDeviceAuthorizationGrant(rp, started);
    const claims = tokens.claims();
    return { started, claims, user_info: await oidc.fetchUserInfo(rp, tokens.access_token, claims.sub) };
  },
  async device_refused() {
    const rp = await discovered();
    const started = await oidc.initiateDeviceAuthorization(rp, { scope: config.scope });
    await ask("device", started);
    return codeOf(oidc.pollDeviceAuthorizationGrant(rp, started));
  },
  async ciba() {
    const rp = await discovered();
    const started = await startBackchannel(rp, config.extra);
    const tokens = await oidc.pollBackchannelAuthenticationGrant(rp, started);
    const claims = tokens.claims();
    return { started, claims, user_info: await oidc.fetchUserInfo(rp, tokens.access_token, claims.sub) };
  },
  async ciba_refused() {
    const rp = await discovered();
    const started = await startBackchannel(rp);
    return codeOf(oidc.pollBackchannelAuthenticationGrant(rp, started));
  },
  async silent() {
    return codeOf(signIn(await discovered(), { prompt: "none" }));
  },
  async logout() {
    const rp = await discovered();
    const { tokens } = await signIn(rp);
    const url = oidc.buildEndSessionUrl(rp, {
      id_token_hint: tokens.id_token, post_logout_redirect_uri: config.post_logout_redirect_uri, state: "bye",
    });
    return { url: url.href };
  },
  async registration() {
    const metadata = { client_name: "Dynamic", redirect_uris: [config.redirect_uri] };
    const rp = await oidc.dynamicClientRegistration(new URL(config.issuer), metadata, undefined, {
      ...secure, initialAccessToken: config.initial_access_token,
    });
    const { tokens } = await signIn(rp);
    return { client: rp.clientMetadata(), claims: tokens.claims() };
  },
});
