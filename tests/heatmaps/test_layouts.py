"""Maps of folders as every tool writes them: tiles lie where the patches of the slides are, in pixels of level 0."""

from __future__ import annotations

import csv
import json

import pytest
from click.testing import CliRunner
from tests.heatmaps.conftest import ByFirstFeature

import gmil
from gmil.cli.main import main
from gmil.heatmaps import write_maps

pytest.importorskip("h5py")
SIDE = 512


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    """Return a function that writes three small slides in a layout."""

    def written(layout):
        if layout in ("clam", "slideflow"):
            pytest.importorskip("torch")
        folder = tmp_path_factory.mktemp("slides") / layout
        words = ["data", "make", "slides", "-o", str(folder), "--layout", layout, "--slides", "3"]
        found = CliRunner().invoke(main, [*words, "--patches", "40", "--features", "4"])
        assert found.exit_code == 0, found.output
        return folder

    return written


def truth_of(folder):
    """Return the corners of the patches of every slide."""
    corners: dict[str, set] = {}
    with (folder / "patch_labels.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            corners.setdefault(row["slide"], set()).add((float(row["x"]), float(row["y"])))
    return corners


@pytest.mark.parametrize(
    ("layout", "options"),
    [
        ("trident", {}),
        ("clam", {}),
        ("stamp", {"mpp": 0.25}),
        ("slideflow", {"mpp": 0.25}),
        ("slideflow", {}),  # centres of patches whose size is found from their spacing
        ("torchmil", {}),
        ("nnmil", {}),
    ],
)
def test_tiles_lie_where_the_patches_are(folder_of, tmp_path, layout, options):
    folder = folder_of(layout)
    found = gmil.scan(folder, **options)
    bags = found[0] if isinstance(found, tuple) else found.bags
    written = write_maps(ByFirstFeature(), bags, tmp_path)
    assert (written.failures, written.notes) == ({}, [])
    truth = truth_of(folder)
    assert len(written.slides) == len(truth) == 3
    for name in written.slides:
        (path,) = tmp_path.glob(f"*{name.rpartition('/')[2]}*.geojson")
        rings = [f["geometry"]["coordinates"][0] for f in json.loads(path.read_text())["features"]]
        assert {tuple(map(float, ring[0])) for ring in rings} == truth[name.rpartition("/")[2]]
        assert {ring[2][0] - ring[0][0] for ring in rings} == {SIDE}
