"""The identity provider that people sign in with, as the environment names it: all of it, or none."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from evalcore.errors import refuse
from evalcore.settings import Settings, settings
from evalcore.study.schema import Role

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """An OpenID Connect provider, and whom the server lets in: with a verified address of `domains`, in one of `groups`, where these are not empty."""

    public_url: str
    issuer: str
    client_id: str
    client_secret: str
    scopes: str
    groups_claim: str
    domains: frozenset[str]
    groups: frozenset[str]
    idle: timedelta
    longest: timedelta
    signs_out: bool

    @property
    def host(self) -> str:
        """What a browser sends as `Host`."""
        return urlsplit(self.public_url).netloc.lower()

    def groups_of(self, claims: Mapping[str, Any]) -> frozenset[str]:
        """The groups that a token names; a provider may send one as plain text."""
        said = claims.get(self.groups_claim) or []
        return frozenset(map(str, [said] if isinstance(said, str) else said))

    def lacks(self, claims: Mapping[str, Any]) -> bool:
        """Whether a token leaves out what this server goes by: providers may keep it for UserInfo."""
        return (
            self.groups_claim not in claims
            or not (claims.get("name") or claims.get("preferred_username"))
            or (bool(self.domains) and "email" not in claims)
        )

    def refusal(self, claims: Mapping[str, Any]) -> str:
        """Why somebody whom the provider knows is not let in, as a sentence; empty where they are."""
        if claims.get("iss") != self.issuer:
            return "The provider signed this for another server."
        if not claims.get("sub"):
            return "The provider did not say who you are."
        if self.domains:
            address = str(claims.get("email") or "")
            if claims.get("email_verified") is not True:
                return "Your provider has not verified your e-mail address. Ask your IT department."
            if address.rpartition("@")[2].lower() not in self.domains:
                return "Your e-mail address is not of an institution that takes part."
        if self.groups and not self.groups & self.groups_of(claims):
            return "Your account is in no group that takes part. Ask your IT department."
        return ""


def provider() -> Provider | None:
    """The provider of the present environment; None where nobody has to sign in."""
    return provider_of(settings())


@lru_cache(maxsize=4)
def provider_of(said: Settings) -> Provider | None:
    """The provider that these settings name, as `provider`."""
    secret = said.oidc_client_secret
    if said.oidc_client_secret_file is not None:
        secret = _secret(said)
    wanted = {
        "OVERREAD_PUBLIC_URL": said.public_url,
        "OVERREAD_OIDC_ISSUER": said.oidc_issuer,
        "OVERREAD_OIDC_CLIENT_ID": said.oidc_client_id,
        "OVERREAD_OIDC_CLIENT_SECRET": secret,
    }
    missing = [name for name, value in wanted.items() if not value]
    if len(missing) == len(wanted):
        if said.allowed_domains or said.allowed_groups:
            msg = "OVERREAD_ALLOWED_DOMAINS and OVERREAD_ALLOWED_GROUPS are for sign-in: set OVERREAD_PUBLIC_URL and the OVERREAD_OIDC_ variables too."
            refuse(msg)
        return None
    if missing:
        refuse(f"Sign-in: expected all of {', '.join(wanted)}, got no {' and no '.join(missing)}.")
    return Provider(
        public_url=_address("OVERREAD_PUBLIC_URL", said.public_url.rstrip("/"), path=False),
        issuer=_address("OVERREAD_OIDC_ISSUER", said.oidc_issuer, path=True),
        client_id=said.oidc_client_id,
        client_secret=secret,
        scopes=said.oidc_scopes,
        groups_claim=said.oidc_groups_claim,
        domains=frozenset(filter(None, map(str.strip, said.allowed_domains.lower().split(",")))),
        groups=frozenset(filter(None, map(str.strip, said.allowed_groups.split(",")))),
        idle=timedelta(minutes=said.idle_minutes),
        longest=timedelta(hours=said.session_hours),
        signs_out=said.oidc_sign_out,
    )


def _secret(said: Settings) -> str:
    path = said.oidc_client_secret_file
    if said.oidc_client_secret:
        refuse("Sign-in: expected OVERREAD_OIDC_CLIENT_SECRET or OVERREAD_OIDC_CLIENT_SECRET_FILE, got both.")
    try:
        return path.read_text(encoding="utf-8").strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"OVERREAD_OIDC_CLIENT_SECRET_FILE: {path} cannot be read: {error}")


def _address(name: str, url: str, *, path: bool) -> str:
    """An address that nobody can listen to or change on its way: https, or plain http on this machine itself."""
    parts = urlsplit(url)
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    plain = not (parts.query or parts.fragment or parts.username or (parts.path and not path))
    if not (safe and parts.hostname and plain):
        wanted = "https://HOST/PATH" if path else "https://HOST without a path"
        refuse(f"{name}: expected {wanted}, got {url!r}")
    return url


def roles_of(names: Iterable[str], *, where: str) -> frozenset[Role]:
    """Roles by their names; another word is an `OverreadError` that says where it stands."""
    names = list(names)
    if unknown := [name for name in names if name not in set(Role)]:
        refuse(f"{where}: expected roles of {', '.join(Role)}, got {', '.join(unknown)}")
    return frozenset(map(Role, names))
