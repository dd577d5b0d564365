"""What a study holds, in words."""

from collections.abc import Mapping

from evalcore.stats.wording import counted, listed


def holdings(counts: Mapping[str, int]) -> str:
    """Responses to conversations, and answers to cases of triage; what is not there is not named.

    >>> holdings({"examples": 31, "cases": 1, "responses": 100, "samples": 10, "models": 3})
    '90 responses of 3 models to 30 conversations and 10 answers to 1 case of triage'
    >>> holdings({"examples": 1, "cases": 1, "responses": 10, "samples": 10, "models": 3})
    '10 answers of 3 models to 1 case of triage'
    >>> holdings({"examples": 0, "cases": 0, "responses": 0, "samples": 0, "models": 0})
    '0 responses of 0 models to 0 conversations'
    """
    n_others, n_responses = counts["examples"] - counts["cases"], counts["responses"] - counts["samples"]
    parts = [
        (counted(n_responses, "response"), counted(n_others, "conversation")) if n_others or not counts["cases"] else None,
        (counted(counts["samples"], "answer"), counted(counts["cases"], "case of triage", "cases of triage")) if counts["cases"] else None,
    ]  # fmt: skip
    by = f" of {counted(counts['models'], 'model')}"
    given = [part for part in parts if part is not None]
    return listed(f"{said}{by if place == 0 else ''} to {what}" for place, (said, what) in enumerate(given))
