"""Data of the size of MED11, made small."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import gmil
from gmil.bags import parquet_files
from gmil.cli.main import main
from gmil.datasets import make_med11
from gmil.errors import FileAccessError

SMALL = {"n_bags": 12, "n_instances": 400, "n_features": 50, "n_events": 3}


def test_what_is_written_is_what_was_asked_for(tmp_path):
    make_med11(tmp_path / "made", **SMALL, witness_rate=0.1, n_files=5)
    files = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert files == [f"part-{i:03d}.parquet" for i in range(5)]
    lazy, y = gmil.scan(tmp_path / "made")
    assert (len(lazy), lazy.n_instances, lazy.n_features, lazy.dtype) == (12, 400, 50, np.float32)
    assert sorted(np.unique(y, return_counts=True)[1]) == [4, 4, 4]
    assert set(y) == {"E001", "E002", "E003"}
    bags = lazy.load()
    np.testing.assert_allclose(bags.instances.sum(axis=1), 1, rtol=1e-6)
    assert (bags.instances == 0).mean() > 0.4
    witnesses = parquet_files.read_parquet(tmp_path / "made").column("witness").to_numpy()
    found = np.add.reduceat(witnesses.astype(int), bags.offsets[:-1])
    assert np.array_equal(found, np.maximum(1, np.rint(0.1 * bags.sizes)))


def test_bags_do_not_depend_on_files_but_on_the_seed(tmp_path):
    for name, how in {"a": {}, "b": {"n_files": 3}, "c": {"random_state": 1}}.items():
        make_med11(tmp_path / name, **SMALL, **how)
    a, b, c = (gmil.read(tmp_path / name)[0].instances for name in "abc")
    assert np.array_equal(a, b)
    assert a.shape == c.shape
    assert not np.array_equal(a, c)


def test_a_run_that_is_stopped_leaves_nothing(tmp_path):
    def stop(done, total):
        if done > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_med11(tmp_path / "made", **SMALL, progress=stop)
    assert list(tmp_path.iterdir()) == []
    make_med11(tmp_path / "made", **SMALL)
    with pytest.raises(FileAccessError, match="exists already"):
        make_med11(tmp_path / "made", **SMALL)
    with pytest.raises(ValueError, match="n_instances=5 must be at least n_bags=12"):
        make_med11(tmp_path / "other", **{**SMALL, "n_instances": 5})


def test_the_command_makes_the_same(tmp_path):
    arguments = ["--bags", "12", "--instances", "400", "--features", "50", "--events", "3"]
    done = CliRunner().invoke(main, ["data", "make", "med11", "-o", str(tmp_path / "made"), *arguments])
    assert done.exit_code == 0, done.output
    make_med11(tmp_path / "again", **SMALL)
    assert np.array_equal(*(gmil.read(tmp_path / name)[0].instances for name in ("made", "again")))


def test_events_can_be_found(tmp_path):
    make_med11(tmp_path / "made", n_bags=60, n_instances=6000, n_features=200, n_events=2, witness_rate=0.2)
    bags, y = gmil.scan(tmp_path / "made")
    result = gmil.cross_validate(gmil.GMIL(30, counting="bags", pos_label="E002"), bags, y, cv=3)
    assert result.auc() > 0.7
