"""How long Browse takes to find conversations among 300,000 responses: `python tests/benchmarks/browse_speed.py`.

Each search is the list as Browse asks for it, when only what nobody asked for before has to be found: the rest of the list is kept. The floor, measured in
the same run, is the list of all conversations, which asks for nothing. A page goes on from any place without asking again.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from evalcore.study import browse, store  # noqa: E402 - found beside this file, installed or not
from evalcore.study.browse import Filters  # noqa: E402
from evalcore.study.db import Engine, connect, reading, writing  # noqa: E402
from tests.benchmarks import _large  # noqa: E402

ASKED = {
    "a word": Filters(search="fever"),
    "theme, judge and label": Filters(theme="hedging", judge="judge-1", label="not_met"),
    "model, judge and label": Filters(model="model-01", judge="judge-1", label="met"),
    "axis and points": Filters(axis="accuracy", points_from=5),
    "judges differ": Filters(judges_differ=True),
    "not read": Filters(reads=browse.UNREAD),
    "overridden": Filters(reads=browse.OVERRIDDEN),
    "in conflict": Filters(reads=browse.CONFLICTING),
}


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--models", type=int, default=60)
    asked.add_argument("--examples", type=int, default=_large.N_EXAMPLES)
    asked.add_argument("--repeats", type=int, default=5, help="each time is the worst of so many")
    asked.add_argument(
        "--db", type=Path, help="a study that is there already, which is only read, instead of a new one"
    )
    given = asked.parse_args()
    with TemporaryDirectory() as folder:
        engine = connect(str(given.db)) if given.db else made(Path(folder) / "study.db", given.models, given.examples)
        with reading(engine) as session:
            browse.examples(session, Filters())
            floor = worst(lambda: len(browse.examples(session, Filters())), given.repeats)
            print(f"all conversations: {1000 * floor:.0f} ms, the floor")
            for words, filters in ASKED.items():
                n_found = len(browse.examples(session, filters))
                took = worst(lambda filters=filters: len(browse.examples(session, filters)), given.repeats)
                print(f"{words}: {took / floor:.1f} x the floor, {1000 * took:.0f} ms, {n_found:,} conversations")
        engine.dispose()


def made(path: Path, n_models: int, n_examples: int) -> Engine:
    """A study with three judges, and the words of all responses to search."""
    engine = _large.made(path, n_models=n_models, n_judges=3, n_examples=n_examples)
    with writing(engine) as session:  # a sentence a response, and the word that is looked for in every one
        numbers = [n for _ in range(n_models) for n in range(1, n_examples + 1)]
        store.Bulk(session).index((number, [_large.SENTENCE]) for number in numbers)
    return engine


def worst(act: Callable[[], object], repeats: int) -> float:
    """Seconds of the slowest of some runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return max(times)


if __name__ == "__main__":
    main()
