"""Mutated files do no harm; and the fuzzer itself tells harm from none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.fuzz_fakes import FakeWork
from tools.fuzz.__main__ import main
from tools.fuzz.mutations import mutate
from tools.fuzz.mutations.choice import FORMATS
from tools.fuzz.mutations.documents import tidy
from tools.fuzz.mutations.models import SIGNED, UNSIGNED, sign
from tools.fuzz.mutations.plain import PLAIN, edit_byte_at
from tools.fuzz.mutations.safetensors_files import Tensor, parse
from tools.fuzz.mutations.zips import Member, bomb, unzip, zipped
from tools.fuzz.results import BAD, FINE, Case, Result
from tools.fuzz.runner import BrokenCaseError, run
from tools.fuzz.seeds import settled
from tools.fuzz.state import State, fingerprint
from tools.fuzz.table import outcome_table

import gmil

MODELS = Path(__file__).parent / "model_files" / "0.1.0"
SUFFIXES = sorted(FORMATS)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the bytes of a small file of every format, by suffix."""
    folder = tmp_path_factory.mktemp("files")
    bags, y = gmil.make_bags(6, random_state=0, return_X_y=True)
    np.save(folder / "bags.npy", bags.instances)
    for suffix in SUFFIXES:
        if suffix != ".npy":
            gmil.write(folder / f"bags{suffix}", bags, y)
    found = {suffix: (folder / f"bags{suffix}").read_bytes() for suffix in SUFFIXES}
    return {**found, ".gmil": (MODELS / "SingleInstance-words.gmil").read_bytes()}


# -------------------------------------------------------------------------------- gmil


@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_mutated_files_do_no_harm(tmp_path, capsys, seconds):
    """One test, since the files take seconds to make: a run, the run again, and one of its cases alone."""
    path = tmp_path / "state.jsonl"
    command = ["--models", "400", "--data", "200", "--mat", "130", "--state", str(path)]
    status = main([*command, "--seconds", str(seconds)])
    results = State(path, fingerprint()).results
    bad = [result for result in results if result.is_bad]
    assert not bad, "\n".join(map(str, bad))
    assert status == 0

    main([*command, "--seconds", "-1"])
    assert State(path, fingerprint()).results == results
    assert (f"{730 - len(results)} of 730 cases are left" in capsys.readouterr().out) == (len(results) < 730)

    for folder in ("once", "twice"):
        main(["--case", results[0].case, "--state", str(path), "--keep", str(tmp_path / folder)])
    assert f"outcome: {results[0].outcome}" in capsys.readouterr().out
    once, twice = (next((tmp_path / folder).iterdir()).read_bytes() for folder in ("once", "twice"))
    assert once == twice


# -------------------------------------------------------------------------------- mutations


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".gmil"])
def test_a_mutation_changes_bytes_and_the_same_seed_makes_the_same(files, suffix):
    for number in range(40):
        first, second = (
            mutate(files[suffix], f"bags{suffix}", np.random.default_rng((5, number)), signed=number % 2 == 1)
            for _ in range(2)
        )
        assert first == second
        assert first.data != files[suffix]


def all_mutations():
    for suffix, mutations in {**FORMATS, ".gmil": {**SIGNED, **UNSIGNED}, ".any": PLAIN}.items():
        for name, change in mutations.items():
            yield pytest.param(suffix, change, id=f"{suffix} {name}")


@pytest.mark.parametrize(("suffix", "change"), list(all_mutations()))
def test_every_mutation_changes_something(files, suffix, change):
    data = files.get(suffix, files[".csv"])
    assert any(change(data, np.random.default_rng(seed)) != data for seed in range(30))


def test_a_byte_is_edited_where_it_is_said(files):
    data = files[".csv"]
    changed = edit_byte_at(data, 7, np.random.default_rng(0))
    assert [i for i, (a, b) in enumerate(zip(data, changed, strict=True)) if a != b] == [7]


def test_signed_files_have_the_checksum_of_what_they_hold(monkeypatch, tmp_path):
    from gmil.io import model_files

    monkeypatch.setattr(model_files, "checksum", lambda _document, tensors: f"{len(tensors)}", raising=False)
    tensors, metadata = parse((MODELS / "GMIL.gmil").read_bytes())
    sign(tensors, metadata)
    assert "sha256" not in metadata  # a file of 0.1.0 has none
    metadata["sha256"] = "stale"
    sign(tensors, metadata)
    assert metadata["sha256"] == f"{len(tensors)}"


def test_a_tidy_document_refers_to_every_tensor_once_by_its_shape():
    tensors = {name: Tensor.of(np.zeros((2, 3))) for name in "ab"}
    twice = [{"tensor": "a", "shape": [6], "order": "C"}, {"tensor": "a", "shape": [2, 3], "order": "C"}]
    tidy(twice, tensors)
    assert [entry["shape"] for entry in twice] == [[2, 3], [2, 3]]
    assert {entry["tensor"] for entry in twice} == set(tensors)
    assert len(tensors) == 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
def test_settled_files_are_the_same_bytes_and_load(tmp_path):
    found = set()
    for name in ("once.gmil", "twice.gmil"):
        gmil.load(MODELS / "SingleInstance-logistic.gmil").save(tmp_path / name)
        found.add(settled((tmp_path / name).read_bytes()))
    assert len(found) == 1
    (tmp_path / "settled.gmil").write_bytes(found.pop())
    assert isinstance(gmil.load(tmp_path / "settled.gmil"), gmil.SingleInstance)


def test_archives_written_by_hand_are_archives():
    members = unzip(zipped([Member("a.txt", b"first"), Member("b/c", b"second" * 99, method=0)]))
    assert [(member.name, member.data) for member in members] == [("a.txt", b"first"), ("b/c", b"second" * 99)]


def test_a_bomb_is_small_and_unpacks_to_zeros():
    archive = zipped([bomb("big", b"header", 3)])
    (member,) = unzip(archive)
    assert member.data == b"header" + bytes(3 * 2**20)
    assert len(archive) < 10_000


# -------------------------------------------------------------------------------- children


def outcomes(*groups, jobs=2, **options):
    cases = [Case(0, group, number) for number, group in enumerate(groups)]
    found = {}
    for result in run(FakeWork, cases, jobs=jobs, **options):
        found[result.mutation] = result  # the last one counts
    return found


def test_children_tell_harm_from_none():
    expected = {
        "raw": "raw",
        "refused": "refused",
        "asked": "memory",
        "memory": "memory",
        "large": "large",
        "pickle": "code",
        "process": "code",
        "written": "code",
        "same": "same",
        "changed": "changed",
        "unnoticed": "unnoticed",
        "not finite": "not finite",
    }
    found = outcomes(*expected)
    assert {group: result.outcome for group, result in found.items()} == expected
    assert "IndexError" in found["raw"].note


def test_a_crash_and_a_hang_belong_to_their_cases():
    found = outcomes("same", "crash", "changed", "hang", "refused", seconds_per_case=3)
    assert {group: result.outcome for group, result in found.items()} == {
        "same": "same",
        "crash": "crash",
        "changed": "changed",
        "hang": "hang",
        "refused": "refused",
    }
    assert "SIGSEGV" in found["crash"].note


def test_a_child_that_dies_between_cases_dies_of_the_last():
    found = outcomes("poison", "same", jobs=1)
    assert {group: result.outcome for group, result in found.items()} == {"poison": "crash", "same": "same"}
    assert "SIGABRT after it" in found["poison"].note


def test_a_fault_of_the_fuzzer_is_no_outcome():
    with pytest.raises(BrokenCaseError, match="no such mutation"):
        outcomes("same", "broken")


def test_no_case_is_begun_when_the_time_is_over():
    assert outcomes("same", "changed", seconds=-1) == {}


# -------------------------------------------------------------------------------- results


def result(case, outcome="same"):
    return Result(str(case), "GMIL", "this/GMIL", "flip bit", outcome)


def test_results_are_kept_and_a_torn_line_is_not(tmp_path):
    path = tmp_path / "state.jsonl"
    cases = [Case(0, "models", i) for i in range(3)]
    State(path, "code").add(map(result, cases))
    path.write_text(path.read_text()[:-20])
    assert [kept.case for kept in State(path, "code").results] == ["0:models:0", "0:models:1"]


def test_results_of_other_code_are_forgotten(tmp_path):
    path = tmp_path / "state.jsonl"
    State(path, "code").add([result(Case(0, "models", 0))])
    assert State(path, "other code").results == []


def test_the_last_result_of_a_case_counts(tmp_path):
    state = State(tmp_path / "state.jsonl", "code")
    case = Case(0, "models", 0)
    state.add([result(case), result(case, "crash")])
    assert [kept.outcome for kept in state.results] == ["crash"]


def test_the_table_has_a_row_a_target_and_a_column_an_outcome():
    table = outcome_table([result(Case(0, "models", 0)), result(Case(0, "models", 1), "crash")])
    assert [column.header for column in table.columns] == ["group", "target", *FINE, *BAD, "all"]
    assert table.row_count == 2


def test_a_case_is_read_as_it_is_written():
    case = Case(3, "data", 17)
    assert Case.parse(str(case)) == case
