"""The LiteLLM proxy with mock responses: a server in the OpenAI format that was not written for this project, in an environment of its own.

python -m tests.litellm_proxy FOLDER            # makes the environment there, about a minute and 700 MB
LITELLM_ENVIRONMENT=FOLDER pytest -m slow tests/runs/test_litellm_proxy.py
"""

import os
import socket
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import yaml

from tests.judge_server import Judge, Told

VARIABLE = "LITELLM_ENVIRONMENT"
PACKAGES = ("litellm[proxy]", "prisma")
"""Without the second the proxy ends in 500 where it would say 401 for a missing key."""
STARTED = "Uvicorn running on"
STOP_SECONDS = 30.0
ANSWER = '{"explanation": "It says so.", "criteria_met": true}'
MOCKED = {
    "judge-1": ANSWER,
    "arabic": "اشرب الماء واسترح.",
    "busy": "litellm.RateLimitError",
    "broken": "litellm.InternalServerError",
    "too-long": "litellm.ContextWindowExceededError",
}
"""Models of the proxy and what each says, or which error it raises."""


def make(folder: Path) -> None:
    """Make the environment."""
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", *PACKAGES], check=True)


def found() -> Path | None:
    """The proxy's program, where an environment was made and named."""
    named = os.environ.get(VARIABLE)
    program = Path(named) / "bin" / "litellm" if named else None
    return program if program is not None and program.exists() else None


@contextmanager
def litellm_proxy(program: Path, folder: Path, *, key: str) -> Iterator[Judge]:
    """The proxy on a free port, for the length of a with block.

    Args:
        program: As `found` gives it.
        folder: Where its configuration is written.
        key: The one key that it lets through.
    """
    config = {
        "model_list": [
            {
                "model_name": name,
                "litellm_params": {"model": f"openai/{name}", "api_key": "none", "mock_response": says},
            }
            for name, says in MOCKED.items()
        ],
        "general_settings": {"master_key": key},
        "litellm_settings": {"num_retries": 0},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config, allow_unicode=True))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {"LITELLM_TELEMETRY": "False", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONUNBUFFERED": "1"}
    command = [program, "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(
        command, cwd=folder, env=os.environ | own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            if not any(STARTED in line for line in process.stdout):
                msg = "the LiteLLM proxy did not start"
                raise RuntimeError(msg)
            Thread(target=process.stdout.read, daemon=True).start()  # what it says later must not fill the pipe
            yield Judge(f"http://127.0.0.1:{port}/v1", Told(), process.pid)
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
