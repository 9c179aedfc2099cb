"""How long ``import gmil`` takes beyond what it needs of scikit-learn, in fresh interpreters, in turn.

``python benchmarks/import_time.py [--rounds 15]``
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

TARGET = 0.3


def seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    pairs = [(seconds("import sklearn.base"), seconds("import gmil")) for _ in range(rounds + 1)][1:]  # one to warm up
    beyond = sorted(ours - theirs for theirs, ours in pairs)
    low, high = beyond[len(beyond) // 4], beyond[-1 - len(beyond) // 4]
    print(
        f"import gmil takes {statistics.median(beyond):.2f} s ({low:.2f} to {high:.2f}, the middle half of {rounds}) "
        f"beyond sklearn.base, which takes {statistics.median(theirs for theirs, _ in pairs):.2f} s; target {TARGET}"
    )


if __name__ == "__main__":
    main()
