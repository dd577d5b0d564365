"""Fetch the official HealthBench files: with progress, resumed where it broke off, checked for size."""

from collections.abc import Callable
from pathlib import Path

import httpx
import stamina

from evalcore.errors import OverreadError, refuse

Progress = Callable[[int, int | None], None]  # bytes that are here, and that there will be (None: unknown)
TRIES = 5
_AS_IT_IS = {"Accept-Encoding": "identity"}
PARTS = {  # the official files of arXiv 2505.08775
    "eval": "2025-05-07-06-14-12_oss_eval.jsonl",
    "hard": "hard_2025-05-08-21-00-10.jsonl",
    "consensus": "consensus_2025-05-09-20-00-46.jsonl",
    "meta": "2025-05-07-06-14-12_oss_meta_eval.jsonl",
}


def download(part: str, *, base_url: str, folder: Path, progress: Progress = lambda _here, _all: None) -> Path:
    """Fetch one official file into a folder; one that is there whole is not fetched again. It grows under the name `NAME.part` until it is whole.

    OverreadError: the part is unknown, the folder cannot be written, the server refuses, or the file does not arrive whole in five tries.
    """
    if part not in PARTS:
        refuse(f"part: expected one of {', '.join(PARTS)}, got {part!r}")
    target = folder / PARTS[part]
    url = f"{base_url.rstrip('/')}/{target.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for attempt in stamina.retry_context(on=_again, attempts=TRIES, wait_initial=0.2, wait_max=5.0, timeout=None):
            with attempt, httpx.Client(timeout=30, follow_redirects=True, headers=_AS_IT_IS) as client:
                _fetch(client, url, target, progress)
    except (httpx.InvalidURL, httpx.HTTPError, OSError) as error:
        raise OverreadError(_sentence(error, url, target)) from error
    return target


def _sentence(error: Exception, url: str, target: Path) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return f"{url}: the server answered {error.response.status_code} {error.response.reason_phrase}"
    if isinstance(error, OSError):
        return f"{target}: cannot be written: {error.strerror or error}"
    if not isinstance(error, httpx.TransportError):
        return f"{url}: {error}"
    tried = f"tried {TRIES} times; " if _again(error) else ""
    return f"{url}: {str(error) or type(error).__name__} ({tried}what arrived is kept; run the command again to resume)"


def _again(error: Exception) -> bool:
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.is_server_error or error.response.status_code in (408, 429)
    return isinstance(error, httpx.TransportError) and not isinstance(error, httpx.UnsupportedProtocol)


def _fetch(client: httpx.Client, url: str, target: Path, progress: Progress) -> None:
    length = client.head(url).raise_for_status().headers.get("Content-Length")
    size = None if length is None else int(length)
    if size is not None and target.exists() and target.stat().st_size == size:
        progress(size, size)
        return
    part = target.with_name(target.name + ".part")
    here = part.stat().st_size if part.exists() else 0
    if size is None or here > size:  # how much is missing cannot be said: from the beginning
        here = 0
    if here != size:
        with client.stream("GET", url, headers={"Range": f"bytes={here}-"} if here else None) as answer:
            answer.raise_for_status()
            if not answer.headers.get("Content-Range", "").startswith(f"bytes {here}-"):
                here = 0
            with part.open("ab" if here else "wb") as stream:
                # as it comes: a block size would hold back bytes that a broken connection then loses
                for block in answer.iter_raw():
                    stream.write(block)
                    here += len(block)
                    progress(here, size)
    if size is not None and part.stat().st_size != size:
        msg = f"expected {size:,} bytes, got {part.stat().st_size:,}"
        raise httpx.RemoteProtocolError(msg)
    part.replace(target)
