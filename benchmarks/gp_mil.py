"""Time and memory of GPMIL on generated bags of 100 000 instances, and its accuracy on bags held out.

``python benchmarks/gp_mil.py [n_instances]``; threads as ``OMP_NUM_THREADS`` says.
"""

from __future__ import annotations

import resource
import sys
import time

import gmil

BAG_SIZE = 50
N_NEW = 200


def main(n_instances: int) -> None:
    n_bags = n_instances // BAG_SIZE
    made = gmil.make_bags(n_bags + N_NEW, n_features=32, bag_size=BAG_SIZE, witness_rate=0.05, random_state=0)
    bags, y = made.bags[:n_bags], made.y[:n_bags]
    before, start = peak_memory(), time.perf_counter()
    model = gmil.GPMIL(random_state=0).fit(bags, y)
    fitted = time.perf_counter()
    accuracy = model.score(made.bags[n_bags:], made.y[n_bags:])
    print(f"{bags.n_instances} instances in {n_bags} bags, {bags.n_features} features")
    print(f"fit {fitted - start:.0f} s, prediction of {N_NEW} bags {time.perf_counter() - fitted:.2f} s")
    print(f"peak memory {peak_memory():.2f} GB, before fitting {before:.2f} GB")
    print(f"accuracy on new bags {100 * accuracy:.1f} %, log-evidence {model.log_evidence_:.1f}")


def peak_memory() -> float:
    """Return the largest resident set so far, in GB (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
