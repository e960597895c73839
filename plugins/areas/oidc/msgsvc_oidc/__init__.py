"""The OpenID provider: discovery, authorization code, device and backchannel flows, tokens and logout."""
