// The certified provider `oidc-provider` as a reference: everything that msgsvc offers is switched on, with the
// same rules where they are a matter of configuration. Clients register themselves (RFC 7591).
//
// Usage: node provider.mjs <port> [post]; prints "reference listens on <issuer>," when it takes requests. With `post`
// it takes posts where browsers may also GET; its cookies are then for TLS alone, so real browsers do not keep them.
//
// Besides the provider's own endpoints there are some for tests, under /test/: what a person does elsewhere than in
// the browser, and a clock.

import { createServer } from "node:http";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { Provider } from "oidc-provider";

const port = Number(process.argv[2]);
const issuer = `http://127.0.0.1:${port}`;

// Seconds that tests have let pass.
let offsetMs = 0;
const realNow = Date.now.bind(Date);
Date.now = () => realNow() + offsetMs;

const DEVICE = "urn:ietf:params:oauth:grant-type:device_code";
const CIBA = "urn:openid:params:grant-type:ciba";

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" });

const asked = new Map();

const configuration = {
  jwks: { keys: [{ ...rsa, kid: "reference", use: "sig", alg: "RS256" }] },
  cookies: {
    keys: [randomBytes(16).toString("hex")],
    ...(process.argv[3] === "post" ? { long: { sameSite: "none" }, short: { sameSite: "none" } } : {}),
  },
  enableHttpPostMethods: process.argv[3] === "post",
  scopes: ["openid", "offline_access", "profile", "phone", "email", "notify"],
  claims: {
    openid: ["sub"],
    profile: ["name", "given_name", "preferred_username", "locale", "updated_at"],
    phone: ["phone_number", "phone_number_verified"],
    email: ["email", "email_verified"],
    acr: null,
    amr: null,
    auth_time: null,
  },
  acrValues: ["urn:example:button"],
  findAccount: (_ctx, sub) => ({
    accountId: sub,
    claims: () => ({
      sub,
      name: sub,
      given_name: sub,
      preferred_username: sub.toLowerCase(),
      locale: "en",
      updated_at: 1700000000,
      phone_number: "+4915112345678",
      phone_number_verified: true,
      email: `${sub.toLowerCase()}@example.org`,
      email_verified: true,
    }),
  }),
  clientAuthMethods: ["client_secret_basic", "client_secret_post", "private_key_jwt", "none"],
  clientDefaults: { grant_types: ["authorization_code"], response_types: ["code"] },
  responseTypes: ["code"],
  conformIdTokenClaims: true,
  // Here everybody is on this machine, which its protection from forged requests would refuse.
  fetch: (url, { dispatcher, ...options }) => fetch(url, options),
  // Single-page applications.
  clientBasedCORS: () => true,
  pkce: { required: (_ctx, client) => client.clientAuthMethod === "none" },
  rotateRefreshToken: true,
  issueRefreshToken: (_ctx, client, code) =>
    client.grantTypeAllowed("refresh_token") && code.scopes.has("offline_access"),
  ttl: {
    AccessToken: 600,
    AuthorizationCode: 60,
    BackchannelAuthenticationRequest: 300,
    DeviceCode: 600,
    Grant: 86400,
    IdToken: 600,
    Interaction: 900,
    RefreshToken: 30 * 86400,
    Session: 43200,
  },
  features: {
    devInteractions: { enabled: true },
    backchannelLogout: { enabled: true },
    ciba: {
      enabled: true,
      deliveryModes: ["poll"],
      triggerAuthenticationDevice: async (_ctx, request, account) => {
        asked.set(request.jti, account.accountId);
      },
      validateBindingMessage: async () => {},
      validateRequestContext: async () => {},
      processLoginHint: async (_ctx, hint) => (hint === "Ann" ? hint : undefined),
      processLoginHintToken: async () => undefined,
      verifyUserCode: async () => {},
    },
    deviceFlow: { enabled: true },
    introspection: { enabled: true, allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId },
    pushedAuthorizationRequests: { enabled: true },
    registration: { enabled: true },
    registrationManagement: { enabled: true },
    revocation: { enabled: true, allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId },
    rpInitiatedLogout: { enabled: true },
  },
};

const provider = new Provider(issuer, configuration);
// It says of the empty answer to a revocation that it is text, which oidc-client-ts takes for an error.
provider.use(async (ctx, next) => {
  await next();
  if (ctx.oidc?.route === "revocation" && ctx.body === "") ctx.remove("Content-Type");
});
const provide = provider.callback();
provider.on("backchannel.error", (_ctx, error) => console.error(error));
provider.on("server_error", (_ctx, error) => console.error(error));

async function answerCiba(id, yes) {
  const request = await provider.BackchannelAuthenticationRequest.find(id);
  const client = await provider.Client.find(request.clientId);
  if (!yes) {
    await provider.backchannelResult(request, new (await import("oidc-provider")).errors.AccessDenied());
    return;
  }
  const grant = new provider.Grant({ accountId: request.accountId, clientId: client.clientId });
  grant.addOIDCScope(request.scope);
  await grant.save();
  await provider.backchannelResult(request, grant, { authTime: Math.floor(Date.now() / 1000) });
}

const forTests = {
  "/test/advance": async (query) => { offsetMs += Number(query.get("seconds")) * 1000; },
  "/test/ciba": async (query) => answerCiba(query.get("auth_req_id"), query.get("answer") === "yes"),
};

createServer(async (request, response) => {
  const url = new URL(request.url, issuer);
  const act = forTests[url.pathname];
  if (!act) return provide(request, response);
  try {
    await act(url.searchParams);
    response.writeHead(204).end();
  } catch (error) {
    response.writeHead(500).end(String(error.stack));
  }
}).listen(port, "127.0.0.1", () => console.log(`reference listens on ${issuer},`));
