"""The steps of the Dockerfile, in a bare root file system of Debian: no container engine is needed, and none may run here."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.browser.server import free_port

ROOT = Path(__file__).parents[2]
CONTEXT = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
"""As .dockerignore lets through."""
FROM_HERE = ("/etc/pip.conf", "/root/.config/pip/pip.conf", "/etc/resolv.conf")
CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE")
"""How this machine reaches its package index; nothing of it is in the image."""


def steps() -> list[str]:
    """What the Dockerfile runs, in order, of both stages."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    return re.findall(r"^RUN (.*)$", text, re.MULTILINE)


def test_the_dockerfile_pins_and_runs_as_nobody_special():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert len(steps()) == 3
    assert "--require-hashes" in text
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Debian with Python and pip, and nothing else; made by debootstrap."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("expected root on Debian: only root may make a root file system")
    if shutil.which("debootstrap") is None:
        subprocess.run(["apt-get", "-qq", "install", "--yes", "debootstrap"], check=True, stdin=subprocess.DEVNULL)
    made = tmp_path / "root"
    asked = ["debootstrap", "--variant=minbase", "--include=python3-venv,python3-pip", "bookworm", str(made)]
    subprocess.run(asked, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return made


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_the_steps_of_the_image_make_a_server_that_is_not_root_and_writes_to_its_volume_alone(bare: Path):
    inside = {name: os.environ[name] for name in CERTIFICATES if name in os.environ}
    for name in (*FROM_HERE, *inside.values()):
        if Path(name).is_file() and (name in inside.values() or not (bare / name[1:]).exists()):
            (bare / name[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, bare / name[1:])
    for name in CONTEXT:
        source, target = ROOT / name, bare / "src" / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.db*", "screenshots"))
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(source, target)
    (bare / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    inside |= {"PATH": "/opt/overread/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "PYTHONDONTWRITEBYTECODE": "1"}
    for step in steps():
        command = ["chroot", str(bare), "sh", "-euc", f"cd /src; {step}"]
        done = subprocess.run(command, env=inside, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{step}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    port = free_port()
    as_server = ["chroot", "--userspec=10001:10001", "--groups=", str(bare), "sh", "-euc"]
    tried = 'id -u; touch /data/x && echo may write to /data; for f in /opt/overread/x /src/x /etc/x; do touch "$f" 2>/dev/null && echo "may write to $f"; done; true'
    told = subprocess.run([*as_server, tried], env=inside, capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == ["10001", "may write to /data"]
    serve = f"cd /data; exec overread serve --port {port} --no-browser"
    server = subprocess.Popen([*as_server, serve], env=inside | {"HOME": "/data"})
    try:
        (asks,) = re.findall(r'CMD \["python", "-c", "(.*?)"\]', (ROOT / "Dockerfile").read_text(encoding="utf-8"))
        healthy = [*as_server, 'exec python -c "$0"', asks.replace("8501", str(port))]
        end = time.monotonic() + 120
        while subprocess.run(healthy, env=inside, stderr=subprocess.DEVNULL, check=False).returncode:
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < end, "the server is not healthy"
            time.sleep(1)
    finally:
        server.terminate()
        server.wait()
