"""A provider of identities in a process of its own, which knows a few invented people."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from tests.browser.server import free_port

PEOPLE: Mapping[str, Mapping[str, Any]] = {
    "ana": {"name": "Ana Lund", "email": "ana@hospital.example", "email_verified": True, "groups": ["readers"]},
    "bo": {"name": "Bo Lund", "email": "bo@hospital.example", "email_verified": False, "groups": []},
    "lena": {"name": "Lena Holt", "email": "lena@hospital.example", "email_verified": True, "groups": ["leads"]},
    "sol": {"name": "Sol Adeyemi", "email": "sol@hospital.example", "email_verified": True, "groups": ["readers"]},
    "eve": {"name": "Ana Lund", "email": "eve@elsewhere.example", "email_verified": True, "groups": ["visitors"]},
}
"""By subject, what the provider says of each."""


@contextmanager
def identity_provider() -> Iterator[str]:
    """Run it until the block ends. Gives its issuer."""
    port = free_port()
    people = [
        part for subject, claims in PEOPLE.items() for part in ("--user-claims", json.dumps({"sub": subject, **claims}))
    ]
    command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port), *people]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    issuer = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + 60
        while True:
            try:
                httpx.get(f"{issuer}/.well-known/openid-configuration").raise_for_status()
                break
            except httpx.HTTPError:
                assert process.poll() is None, "the provider did not start"
                assert time.monotonic() < end, "the provider does not answer"
                time.sleep(0.1)
        yield issuer
    finally:
        process.terminate()
        process.wait()
