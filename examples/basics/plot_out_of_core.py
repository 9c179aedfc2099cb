"""
Bags that do not fit into memory
================================

**Question.** How much memory does a model need whose data are larger than
memory?

Frames of a few hundred videos are millions of rows. :func:`gmil.scan` opens a
Parquet file without reading its features; the model then reads them in blocks
of a few megabytes. :func:`gmil.read` takes everything into memory at once.
Both give the same model. Here time and peak memory of both are measured on
growing files.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gmil

FEATURES, ROWS_OF_A_BAG = 100, 500


def make_bags(n_bags):
    """Return bags with one witness in ten rows of the positive ones."""
    n_rows = n_bags * ROWS_OF_A_BAG
    instances = np.random.default_rng(0).standard_normal(
        (n_rows, FEATURES), np.float32
    )
    y = np.arange(n_bags) % 2
    instances[:, 0] += (
        6 * np.repeat(y, ROWS_OF_A_BAG) * (np.arange(n_rows) % 10 == 0)
    )
    return gmil.Bags(instances, np.arange(n_bags + 1) * ROWS_OF_A_BAG), y


# %%
# The same lines, twice
# ---------------------
# ``gmil.scan`` in place of ``gmil.read`` is the whole difference. Each runs in
# a process of its own, whose peak memory Linux keeps in ``/proc/self/status``.
# What the process holds before it reads anything is subtracted.

CODE = r"""
import json, re, sys, time
from pathlib import Path
import gmil

def mebibytes(name):
    status = Path("/proc/self/status").read_text()
    return int(re.search(name + r":\s+(\d+)", status)[1]) / 1024

model = gmil.GMIL(n_jobs=2, random_state=0)
at_start = mebibytes("VmRSS")
for path in sys.argv[2:]:
    start = time.perf_counter()
    bags, y = getattr(gmil, sys.argv[1])(path)
    decisions = model.fit(bags, y).decision_function(bags[:4]).tolist()
    seconds = time.perf_counter() - start
    peak = mebibytes("VmHWM") - at_start
    row = {"seconds": seconds, "MiB": peak, "decisions": decisions}
    print(json.dumps(row))
    del bags
"""


def measure(how, paths):
    command = [sys.executable, "-c", CODE, how, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


sizes = np.array([100, 200, 400])
bags, y = make_bags(sizes.max())
with tempfile.TemporaryDirectory() as folder:
    paths = [Path(folder) / f"{n_bags}.parquet" for n_bags in sizes]
    for path, n_bags in zip(paths, sizes):
        gmil.write(path, bags[:n_bags], y[:n_bags])
    file_mib = [path.stat().st_size / 2**20 for path in paths]
    found = {how: measure(how, paths) for how in ("read", "scan")}

print("rows:       ", (sizes * ROWS_OF_A_BAG).tolist())
print("file, MiB:  ", np.round(file_mib).astype(int).tolist())
for how, rows in found.items():
    print(f"{how}, MiB:  ", [round(row["MiB"]) for row in rows])
    print(f"{how}, s:    ", [round(row["seconds"], 1) for row in rows])
pairs = zip(found["read"], found["scan"], strict=True)
same = all(
    np.allclose(a["decisions"], b["decisions"], rtol=1e-3) for a, b in pairs
)
print("same decisions:", same)

# %%

plt.rc("font", size=12)
COLORS = {"read": "#E69F00", "scan": "#0072B2"}

thousands = sizes * ROWS_OF_A_BAG / 1000
titles = {"MiB": "peak memory, MiB", "seconds": "time, seconds"}
fig, axes = plt.subplots(1, 2, figsize=(7, 4), layout="constrained")
for ax, (what, title) in zip(axes, titles.items()):
    for how, rows in found.items():
        name = f"gmil.{how}" if what == "MiB" else None
        values = [row[what] for row in rows]
        ax.plot(
            thousands, values, "o-", linewidth=2, color=COLORS[how], label=name
        )
    ax.set_title(title, loc="left", fontsize=12)
    ax.set(xlabel="thousand rows", ylim=(0, None), xticks=thousands)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].plot(
    thousands, file_mib, "--", color="#777777", label="size of the file"
)
fig.legend(loc="outside upper center", ncols=3, frameon=False)
plt.show()

# %%
# **What one sees.** Peak memory of ``gmil.read`` grows several times as fast
# as the file: columns become a matrix, and both are in memory for a while.
# That of ``gmil.scan`` flattens: it keeps a sample of the instances, a few
# blocks and one row for every bag. The decisions are the same.
#
# **Limits.** Seconds and mebibytes are those of the machine that made this
# page, and include its disk cache. Small files gain nothing. Blocks are read
# by :class:`~gmil.GMIL`, :class:`~gmil.GMILCV`, :class:`~gmil.WeightedGMIL`
# and the transformers to vectors; other methods need all instances in memory.
#
# **More.** :doc:`scale </guide/scale>`
