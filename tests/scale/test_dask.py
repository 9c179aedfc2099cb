"""The same results on a cluster, whatever happens to its workers."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import clone

import gmil
from gmil.cli.main import main
from gmil.errors import BagValidationError, ClusterError, FormatError, MissingFileError
from gmil.scale.dask import DaskRunner, connect

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install gmil[dask].")

# Dask leaves sockets and loops to the garbage collector when a worker is killed.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client():
    """Return a client of two worker processes, one thread each."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_model_is_the_same_bit_for_bit(client, stored):
    _, lazy, y = stored
    for setting in ({}, {"scale": "standard", "n_clusters": 9, "n_negative": 0}):
        here = gmil.GMIL(sample_size=200, random_state=0, **setting).fit(lazy, y)
        there = gmil.GMIL(sample_size=200, random_state=0, **setting).fit(lazy.on(client), y)
        for name in ("cluster_centers_", "positive_counts_", "negative_counts_", "positive_bins_", "negative_bins_"):
            assert np.array_equal(getattr(here, name), getattr(there, name)), name
        assert np.array_equal(here.decision_function(lazy), there.decision_function(lazy.on(client)))


@pytest.mark.parametrize(
    "model",
    [
        gmil.WeightedGMIL(n_centers=10, sample_size=200, random_state=0),
        gmil.GMILCV({"n_clusters": [6], "n_positive": [1, 2]}, cv=3, random_state=0),
    ],
    ids=["WeightedGMIL", "GMILCV"],
)
def test_fits_predictions_and_scores_are_the_same(client, stored, model):
    _, lazy, y = stored
    here, there = clone(model).fit(lazy, y), clone(model).fit(lazy.on(client), y)
    some = lazy[::-2]  # another order than that of the source
    assert np.array_equal(here.decision_function(some), there.decision_function(some.on(client)))
    assert np.array_equal(here.predict_proba(some), there.predict_proba(some.on(client)))
    if hasattr(model, "score_instances"):
        # Blocks are other ones, and with them the order in which products are summed up.
        np.testing.assert_allclose(there.score_instances(some.on(client)), here.score_instances(some), rtol=1e-6)


@pytest.mark.parametrize(
    "form", ["files", pytest.param("npy", marks=pytest.mark.slow), pytest.param("array", marks=pytest.mark.slow)]
)
def test_cross_validation_is_the_same_bit_for_bit(client, store, labelled, tmp_path, form):
    bags, y = labelled
    lazy, _ = store(tmp_path, form, bags, y)
    models = [gmil.GMIL(10, sample_size=200), gmil.WeightedGMIL(scales=["l2"], n_centers=10, sample_size=200)]
    for model in models:
        here = gmil.cross_validate(model, lazy, y, cv=3)
        there = gmil.cross_validate(model, lazy.on(client), y, cv=3)
        assert np.array_equal(here.decisions, there.decisions)


def test_workers_hold_nothing_but_the_parts_they_work_on(client, stored):
    _, lazy, _ = stored
    sizes = lazy.on(client).reduce(rows_here, (np.maximum, np.add))
    assert sizes[0].max() <= max(lazy.sizes.max(), np.diff(lazy.source.edges).max())
    assert np.array_equal(sizes[1], lazy.sizes)


def rows_here(bags):
    return np.full(len(bags), bags.n_instances), bags.sizes


def slowly_counted(bags, marks):
    """Count, leave a mark, and take a while, so that there is time to be killed."""
    (marks / f"{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(0.05)
    return (np.array([np.bincount((bag[:, 0] > 0).astype(int), minlength=2) for bag in bags]),)


def test_a_killed_worker_costs_time_and_no_count(client, stored, tmp_path):
    _, lazy, _ = stored
    marks = tmp_path / "marks"
    marks.mkdir()
    (expected,) = lazy.reduce(functools.partial(slowly_counted, marks=marks), (np.add,))
    for mark in marks.iterdir():
        mark.unlink()
    killed = []

    def kill_one(done, total):
        if not killed and done > total / 4:
            killed.append(int(next(iter(marks.iterdir())).name.split("-")[0]))
            os.kill(killed[0], signal.SIGKILL)

    counting = functools.partial(slowly_counted, marks=marks)
    (found,) = lazy.on(client).watched(kill_one).reduce(counting, (np.add,))
    assert killed
    assert killed[0] != os.getpid()
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("harm", ["missing", "corrupt"])
def test_a_bad_part_is_named_and_nothing_is_half_done(client, store, labelled, tmp_path, harm):
    bags, y = labelled
    lazy, _ = store(tmp_path, "files", bags, y)
    model = gmil.GMIL(8, sample_size=100, random_state=0)
    if harm == "missing":
        (tmp_path / "b.parquet").unlink()
    else:
        content = bytearray((tmp_path / "b.parquet").read_bytes())
        content[4:-200] = bytes(len(content) - 204)
        (tmp_path / "b.parquet").write_bytes(bytes(content))
    with pytest.raises((FormatError, MissingFileError), match=r"b\.parquet"):
        model.fit(lazy.on(client), y)
    assert not hasattr(model, "cluster_centers_")
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".csv") == sorted(
        {"a.parquet", "b.parquet"} - ({"b.parquet"} if harm == "missing" else set())
    )


def test_no_cluster_is_one_clear_error(stored):
    _, lazy, _ = stored
    with pytest.raises(BagValidationError, match="A Dask client is needed, got str"):
        lazy.on("tcp://nowhere:1")
    with pytest.raises(BagValidationError, match="No Dask scheduler answers at tcp://127"):
        connect("tcp://127.0.0.1:1", timeout="0.3s")
    assert list(DaskRunner.__call__(object.__new__(DaskRunner), len, [])) == []


def test_the_command_runs_on_a_cluster(client, store, labelled, tmp_path):
    store(tmp_path, "parquet", *labelled)
    figures = []
    for extra in ([], ["--dask", client.scheduler.address]):
        arguments = ["cv", str(tmp_path / "bags.parquet"), "--method", "gmil", "--stream", "--folds", "3", "--json"]
        done = CliRunner().invoke(main, [*arguments, *extra])
        assert done.exit_code == 0, done.output
        row = json.loads(done.stdout)[0]
        figures.append({name: value for name, value in row.items() if "seconds" not in name})
    assert figures[0] == figures[1]


# -------------------------------------------------------------------------------- clusters that cannot work

WITHOUT_GMIL = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "gmil":
            raise ModuleNotFoundError("No module named 'gmil'", name="gmil")

sys.meta_path.insert(0, Missing())
"""


@contextlib.contextmanager
def dask_process(*arguments, env=None):
    """Start a scheduler or a worker as a process that can be killed."""
    command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env={**os.environ, **(env or {})}, **silent) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def scheduler(tmp_path):
    """Return a scheduler in a process of its own, without workers, and its address."""
    about = tmp_path / "scheduler.json"
    with dask_process("scheduler", "--port", "0", "--host", "127.0.0.1", "--scheduler-file", str(about)) as process:
        end = time.monotonic() + 60
        while not (about.exists() and about.read_text()) and time.monotonic() < end:
            time.sleep(0.1)
        yield process, json.loads(about.read_text())["address"]


def worker_of(address, **options):
    return dask_process("worker", address, "--nthreads", "1", "--no-nanny", **options)


def test_a_cluster_without_workers_is_one_clear_error(scheduler, stored, monkeypatch):
    _, lazy, y = stored
    _, address = scheduler
    monkeypatch.setattr("gmil.scale.dask._SECONDS_WITHOUT_WORKERS", 1.0)
    with distributed.Client(address) as client, pytest.raises(ClusterError, match="no worker for 1 s"):
        gmil.GMIL(8).fit(lazy.on(client), y)


def test_a_worker_without_gmil_is_named(scheduler, stored, tmp_path):
    _, lazy, y = stored
    _, address = scheduler
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "sitecustomize.py").write_text(WITHOUT_GMIL)
    with (
        worker_of(address, env={"PYTHONPATH": str(tmp_path / "elsewhere")}),
        distributed.Client(address) as client,
        pytest.raises(ClusterError, match=r"tcp://.*No module named 'gmil'.*Install gmil where they run"),
    ):
        gmil.GMIL(8).fit(lazy.on(client), y)


def test_a_worker_with_another_version_is_named(scheduler, stored, tmp_path):
    _, lazy, y = stored
    _, address = scheduler
    (tmp_path / "elsewhere" / "gmil").mkdir(parents=True)
    (tmp_path / "elsewhere" / "gmil" / "__init__.py").write_text("__version__ = '0.0.1'\n")
    with (
        worker_of(address, env={"PYTHONPATH": str(tmp_path / "elsewhere")}),
        distributed.Client(address) as client,
        pytest.raises(ClusterError, match=rf"another version of gmil than {gmil.__version__}.*tcp://.*\(0\.0\.1\)"),
    ):
        gmil.GMIL(8).fit(lazy.on(client), y)


@pytest.mark.slow
def test_a_scheduler_that_hangs_is_one_clear_error(scheduler, stored, tmp_path, monkeypatch):
    _, lazy, _ = stored
    process, address = scheduler
    counting = functools.partial(slowly_counted, marks=tmp_path)
    with worker_of(address), distributed.Client(address, timeout="5s") as client:

        def stop(done, total):
            monkeypatch.setattr("gmil.scale.dask._SECONDS_FOR_AN_ANSWER", 1.0)
            process.send_signal(signal.SIGSTOP)

        try:
            with pytest.raises(ClusterError, match=r"scheduler at tcp.* does not answer within 1 s"):
                lazy.on(client).watched(stop).reduce(counting, (np.add,))
        finally:
            process.send_signal(signal.SIGCONT)


def counted_by_all_but_one(bags, marks):
    """Count, but hang where this is the first process that came."""
    with contextlib.suppress(FileExistsError):
        (marks / "first").mkdir()
        (marks / "first" / str(os.getpid())).touch()
    if (marks / "first" / str(os.getpid())).exists():
        time.sleep(60)
    return (bags.sizes,)


def test_the_parts_of_a_slow_worker_are_done_elsewhere(client, stored, tmp_path, monkeypatch):
    _, lazy, _ = stored
    monkeypatch.setattr("gmil.scale.dask._SECONDS_OF_PATIENCE", 0.5)
    counting = functools.partial(counted_by_all_but_one, marks=tmp_path)
    start = time.monotonic()
    (found,) = lazy.on(client).reduce(counting, (np.add,))
    assert np.array_equal(found, lazy.sizes)
    assert time.monotonic() - start < 50
    (slow,) = (tmp_path / "first").iterdir()
    os.kill(int(slow.name), signal.SIGKILL)  # another worker takes its place


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["scheduler", "worker"])
def test_a_cluster_that_is_killed_is_one_clear_error(scheduler, stored, tmp_path, victim, monkeypatch):
    _, lazy, _ = stored
    process, address = scheduler
    monkeypatch.setattr("gmil.scale.dask._SECONDS_WITHOUT_WORKERS", 200.0)
    counting = functools.partial(slowly_counted, marks=tmp_path)
    with worker_of(address) as worker, distributed.Client(address) as client:

        def kill(done, total):
            monkeypatch.setattr("gmil.scale.dask._SECONDS_WITHOUT_WORKERS", 1.0)
            (process if victim == "scheduler" else worker).kill()

        expected = "was lost" if victim == "scheduler" else "has had no worker for 1 s"
        with pytest.raises(ClusterError, match=expected):
            lazy.on(client).watched(kill).reduce(counting, (np.add,))


def test_workers_that_do_not_answer_are_one_clear_error(stored, monkeypatch):
    class Silent:
        def submit(self):
            pass

        cancel = submit

        def wait_for_workers(self, n, timeout):
            pass

        def run(self, *_, **__):
            time.sleep(5)

    _, lazy, y = stored
    monkeypatch.setattr("gmil.scale.dask._SECONDS_FOR_AN_ANSWER", 0.1)
    with pytest.raises(ClusterError, match="do not answer within"):
        gmil.GMIL(8).fit(lazy.on(Silent()), y)
