"""Pages of OpenID clients, with their secrets, redirect URIs, sign-ins and sign-outs."""

from msgsvc_oidc.dashboard.pages import pages

__all__ = ["pages"]
