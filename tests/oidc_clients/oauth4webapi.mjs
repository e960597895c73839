// npm `oauth4webapi`: each answer of the provider is checked against the letter of its standard.

import * as oauth from "oauth4webapi";
import { ask, config, play } from "./conversation.mjs";

const plain = { [oauth.allowInsecureRequests]: true };
const client = { client_id: config.client_id };
const authentication = config.auth_method === "none" ? oauth.None() : config.auth_method === "client_secret_post"
  ? oauth.ClientSecretPost(config.client_secret) : oauth.ClientSecretBasic(config.client_secret);

async function discovered(algorithm = "oidc") {
  const issuer = new URL(config.issuer);
  const response = await oauth.discoveryRequest(issuer, { algorithm, ...plain });
  return oauth.processDiscoveryResponse(issuer, response);
}

async function authorization(as, { pushed = false, extra = {} } = {}) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const nonce = oauth.generateRandomNonce();
  let parameters = new URLSearchParams({
    client_id: client.client_id, redirect_uri: config.redirect_uri, response_type: "code", scope: config.scope,
    state, nonce, code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256",
    ...(config.scope.includes("offline_access") ? { prompt: "consent" } : {}), ...extra,
  });
  if (pushed) {
    const response = await oauth.pushedAuthorizationRequest(as, client, authentication, parameters, plain);
    const { request_uri } = await oauth.processPushedAuthorizationResponse(as, client, response);
    parameters = new URLSearchParams({ client_id: client.client_id, request_uri });
  }
  const url = new URL(as.authorization_endpoint);
  for (const [name, value] of parameters) url.searchParams.append(name, value);
  const answer = new URL(await ask("sign_in", { url: url.href }));
  return { answer, state, nonce, verifier };
}

async function signedIn(as, options) {
  const { answer, state, nonce, verifier } = await authorization(as, options);
  const checked = oauth.validateAuthResponse(as, client, answer, state);
  const response = await oauth.authorizationCodeGrantRequest(
    as, client, authentication, checked, config.redirect_uri, verifier, plain);
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, response, {
    expectedNonce: nonce, requireIdToken: true, ...(options?.extra?.max_age ? { maxAge: Number(options.extra.max_age) } : {}),
  });
  await oauth.validateApplicationLevelSignature(as, response, plain);
  return { tokens, headers: Object.fromEntries(response.headers), claims: oauth.getValidatedIdTokenClaims(tokens) };
}

async function userInfo(as, token, subject) {
  const response = await oauth.userInfoRequest(as, client, token, plain);
  return oauth.processUserInfoResponse(as, client, subject, response);
}

// What the library makes of an error: which class, code and status, and the challenges that it could read.
async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    const { name, code, status } = error;
    const challenges = error instanceof oauth.WWWAuthenticateChallengeError ? error.cause : undefined;
    return { name, code, status, error: error.error ?? null, challenges: challenges ?? null };
  }
  return null;
}

await play({
  async code() {
    const as = await discovered();
    const { tokens, headers, claims } = await signedIn(as);
    return { tokens, headers, claims, user_info: await userInfo(as, tokens.access_token, claims.sub) };
  },
  async metadata() {
    return [await discovered("oidc"), await discovered("oauth2")];
  },
  async pushed() {
    const as = await discovered();
    return (await signedIn(as, { pushed: true, extra: { max_age: "900" } })).claims;
  },
  async cancelled() {
    const as = await discovered();
    const { answer, state } = await authorization(as);
    return failure((async () => oauth.validateAuthResponse(as, client, answer, state))());
  },
  async refresh() {
    const as = await discovered();
    const { tokens, claims } = await signedIn(as);
    const response = await oauth.refreshTokenGrantRequest(as, client, authentication, tokens.refresh_token, plain);
    const fresh = await oauth.processRefreshTokenResponse(as, client, response);
    return { old: tokens, fresh, user_info: await userInfo(as, fresh.access_token, claims.sub) };
  },
  async ends() {
    const as = await discovered();
    const { tokens } = await signedIn(as);
    const looked = await oauth.introspectionRequest(as, client, authentication, tokens.access_token, plain);
    const before = await oauth.processIntrospectionResponse(as, client, looked);
    const gone = await oauth.revocationRequest(as, client, authentication, tokens.access_token, plain);
    await oauth.processRevocationResponse(gone);
    const again = await oauth.introspectionRequest(as, client, authentication, tokens.access_token, plain);
    return { before, after: await oauth.processIntrospectionResponse(as, client, again) };
  },
  // The first answers of the device and backchannel endpoints, and that the wait is told by the right error.
  async device() {
    const as = await discovered();
    const response = await oauth.deviceAuthorizationRequest(as, client, authentication, { scope: config.scope }, plain);
    const started = await oauth.processDeviceAuthorizationResponse(as, client, response);
    const poll = async () => oauth.processDeviceCodeResponse(as, client,
      await oauth.deviceCodeGrantRequest(as, client, authentication, started.device_code, plain));
    return { started, pending: await failure(poll()) };
  },
  async ciba() {
    const as = await discovered();
    const parameters = { scope: config.scope, login_hint: config.login_hint };
    const response = await oauth.backchannelAuthenticationRequest(as, client, authentication, parameters, plain);
    const started = await oauth.processBackchannelAuthenticationResponse(as, client, response);
    const poll = async () => oauth.processBackchannelAuthenticationGrantResponse(as, client,
      await oauth.backchannelAuthenticationGrantRequest(as, client, authentication, started.auth_req_id, plain));
    return { started, pending: await failure(poll()) };
  },
  async failures() {
    const as = await discovered();
    const wrong = oauth.ClientSecretBasic("wrong");
    const refresh = async (auth, token) => oauth.processRefreshTokenResponse(as, client,
      await oauth.refreshTokenGrantRequest(as, client, auth, token, plain));
    return {
      grant: await failure(refresh(authentication, "no-such-token")),
      secret: await failure(refresh(wrong, "no-such-token")),
      user_info: await failure(userInfo(as, "no-such-token", oauth.skipSubjectCheck)),
    };
  },
});
