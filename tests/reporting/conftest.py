"""Bags with times and names, fitted models, and the folder of a small run."""

from __future__ import annotations

import numpy as np
import pytest

from gmil import GMIL, Bags, make_bags
from gmil.paper import measure, parse_spec, run
from gmil.paper.figures import figure7
from gmil.paper.runs.output import write_json
from gmil.paper.tables import table1, table2

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>\"'&| `*_"
SPEC = {
    "title": "Table 1: toys",
    "datasets": ["easy", "hard"],
    "controls": True,
    "generated": {
        "easy": {"n_bags": 24, "n_features": 4, "random_state": 1},
        "hard": {"n_bags": 30, "n_features": 4, "separation": 1.0, "random_state": 2},
    },
    "protocol": {"folds": 3, "repeats": 2, "tuned_repeats": 1, "inner_folds": 2, "max_settings": 2},
    "method": [
        {"name": "gmil", "label": "GMIL", "params": {"n_clusters": 6}},
        {"name": "bag-statistics", "label": "bag statistics"},
    ],
}
SWEEP = {
    **{key: SPEC[key] for key in ("datasets", "generated", "protocol", "controls")},
    "title": "Figure 7: toys",
    "sweep": [
        {
            "name": "clusters",
            "title": "Clusters",
            "axis": "number of clusters K",
            "method": "gmil",
            "parameter": "n_clusters",
            "values": [4, 6, 8],
            "datasets": ["easy"],
            "timed": True,
        }
    ],
}


@pytest.fixture(scope="session")
def videos():
    """Return bags with hostile ids and a time, labels as texts, and a fitted GMIL."""
    bags, y = make_bags(30, bag_size=(4, 9), n_features=5, separation=6, random_state=0, return_X_y=True)
    times = np.arange(bags.n_instances) - np.repeat(bags.offsets[:-1], bags.sizes)
    info = {"time_s": times * 0.5, "file": [f"<b>{i}</b>" for i in range(bags.n_instances)]}
    ids = [HOSTILE, *(f"video {i}" for i in range(1, 30))]
    bags = Bags(bags.instances, bags.offsets, bag_ids=ids, instance_info=info)
    y = np.where(y == 1, "event", "other")
    return bags, y, GMIL(8, 2, 3, pos_label="event", random_state=0).fit(bags, y)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """Return the output folder of a small Table 1, Table 2 and Figure 7."""
    folder = tmp_path_factory.mktemp("run")
    spec = parse_spec(SPEC, "table1")
    found = table1.summarize(run(spec, output=folder))
    for row in found["rows"]:  # generated sets have no published figures
        if row["column"] == "printed":
            row["cells"] = {"easy": {"accuracy": 0.3}, "hard": {"accuracy": 0.99}}
    write_json(found, folder / "table1.json")
    timed = parse_spec(SPEC, "table2")
    write_json(table2.summarize(timed, measure(timed, output=folder)), folder / "table2.json")
    sweep = parse_spec(SWEEP, "figure7")
    write_json(figure7.summarize(run(sweep, output=folder), measure(sweep, output=folder)), folder / "figure7.json")
    return folder
