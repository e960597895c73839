"""Why our provider answers otherwise than the reference, by case and fact; `*` stands for any."""

#: The first reason whose pattern fits is the one in the table.
REASONS: dict[tuple[str, str], str] = {
    # Metadata and keys
    ("metadata: o*", "cached"): "clients may keep the document; the reference leaves it open",
    ("metadata: acr_values_supported", "is"): "each provider has its own values",
    (
        "metadata: backchannel_user_code_parameter_supported",
        "is",
    ): "a Yes in the messenger is the proof",
    ("metadata: claims_supported", "is"): "ours lists the claims of ID tokens too",
    ("metadata: id_token_signing_alg_values_supported", "is"): "a setting of the reference",
    ("metadata: response_modes_supported", "is"): "none of the flows that need a fragment is there",
    ("metadata: subject_types_supported", "is"): "a setting of the reference",
    ("metadata: *", "is"): "a member that may be left out where its default is meant",
    ("keys: document", "type"): "both media types are registered for it (RFC 7517, section 8.5)",
    (
        "keys: document",
        "cached",
    ): "clients may keep the keys for as long as they are published ahead",
    # Authorization
    ("authorize: no redirect_uri", "*"): (
        "required by OpenID Connect Core 1.0, section 3.1.2.1; the reference takes the only one"
    ),
    ("authorize: response_type *", "fragment"): "ours has no response mode fragment",
    (
        "authorize: *scope*",
        "error",
    ): "RFC 6749, section 4.1.2.1, has a code for what is wrong with a scope",
    (
        "authorize: response_mode *",
        "*",
    ): "ours has `query` and `form_post` alone",
    ("authorize: request*", "parameters"): "ours describes the error",
    ("authorize: registration", "parameters"): "ours describes the error",
    ("authorize: id_token_hint no token", "error"): "a hint that can't be read is none",
    (
        "session: prompt select_account",
        "*",
    ): "ours asks again; the reference has no such prompt switched on",
    # Pushed requests
    (
        "pushed: scope without openid",
        "error",
    ): "RFC 6749, section 4.1.2.1, as at the authorization endpoint",
    ("pushed: with request_uri", "*"): "RFC 9126, section 2.1: the parameter must not be there",
    ("pushed: request_uri *", "*"): (
        "without a valid pushed request there is no redirect URI: the person sees an error page"
    ),
    # Devices
    (
        "device: start*",
        "members",
    ): "RFC 8628, section 3.2: ours says the interval, which is the default",
    (
        "device: start, client without this grant",
        "error",
    ): "RFC 6749, section 5.2, has a code for it",
    ("device: start, no scope", "*"): "nothing here is done without a sign-in",
    (
        "device: poll again at once",
        "error",
    ): "RFC 8628, section 3.5; the reference lets clients poll",
    ("device: code of another client", "error"): "that client may not use this grant",
    # Logout
    ("logout: hint and URI, *", "goes"): "no session in this browser: there is nothing to ask",
    ("logout: client_id and URI, *", "goes"): "no session in this browser: there is nothing to ask",
    (
        "logout: URI alone, *",
        "*",
    ): "RP-Initiated Logout 1.0, section 3: a URI of nobody can't be checked",
    ("logout: hint no token, *", "*"): "a hint that can't be read is none: the person is asked",
    # Tokens
    ("request: grant of other clients", "error"): "RFC 6749, section 5.2, has a code for it",
    ("*ID token*", "header"): "`typ` is there; it may be (RFC 7519, section 5.1)",
    ("*ID token*", "claims"): "ours always says how and when the person signed in",
    (
        "code: no redirect_uri",
        "*",
    ): "RFC 6749, section 4.1.3: required, as the request had it",
    ("client: none", "*"): "RFC 6749, section 5.2: no client authentication is invalid_client",
    (
        "*not authenticated",
        "*",
    ): "RFC 6749, section 5.2: no client authentication is invalid_client",
    ("client: header *", "*"): "RFC 6749, section 5.2: an unsupported method is invalid_client",
    ("*: GET", "*"): "a path that exists does not take GET; the reference has no route for it",
    ("refresh: more scopes", "members"): "the reference repeats the scope",
    ("refresh: again at once", "*"): (
        "for some seconds a client that lost the answer gets the same successor"
    ),
    ("refresh: successor after that", "*"): "as above: the family has not ended",
    # Resources
    ("userinfo: by *", "members"): "the person of the sandbox has shared no phone number",
    ("userinfo: in the form", "members"): "the person of the sandbox has shared no phone number",
    ("userinfo: in the query", "*"): "RFC 9700, section 4.3.2: tokens in a query are not looked at",
    ("userinfo: another scheme", "*"): "a request without a bearer token",
    ("introspection: *", "members"): "all but `active` may be left out (RFC 7662, section 2.2)",
    ("revocation: *", "not stored"): "all answers of ours about tokens are",
    ("revocation: *", "type"): "an empty object; some clients read JSON alone",
    ("revocation: *", "members"): "an empty object; some clients read JSON alone",
}
