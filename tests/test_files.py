"""Files appear whole or not at all, and nothing but a file is replaced."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gmil import GMIL, GmilError
from gmil.datasets import make_bags
from gmil.errors import FileAccessError
from gmil.safety.atomic import replacing
from gmil.safety.temporaries import make_temporary, remove_leftovers


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.gmil"


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


def test_the_new_file_appears_when_the_block_is_done(path):
    with replacing(path) as temporary:
        assert temporary.parent == path.parent
        assert temporary.suffix == ".gmil"
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("kill", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_kill_in_the_middle_leaves_the_old_file_and_nothing_else(path, kill):
    def write_half():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise kill

    for old in (None, "old"):
        if old is not None:
            path.write_text(old)
        with pytest.raises(kill):
            write_half()
        assert [file.read_text() for file in path.parent.iterdir()] == ([] if old is None else [old])


def test_a_new_file_has_the_mode_of_the_umask(path, umask):
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    assert os.umask(umask) == umask


def test_threads_that_write_leave_the_umask_alone(tmp_path, umask, monkeypatch):
    set_umask = os.umask

    def slow_umask(mask):
        before = set_umask(mask)
        time.sleep(0.002)
        return before

    monkeypatch.setattr(os, "umask", slow_umask)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: GMIL().save(tmp_path / f"{i}.gmil"), range(16)))
    monkeypatch.undo()
    assert os.umask(umask) == umask
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o666 & ~umask}


def test_an_existing_file_keeps_its_mode(path, umask):
    path.touch()
    path.chmod(0o600)
    GMIL().save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_temporary_file_is_private(path):
    with replacing(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_one_and_its_file_is_replaced(path, tmp_path, is_there):
    real = tmp_path / "elsewhere" / "real.gmil"
    real.parent.mkdir()
    if is_there:
        real.write_text("old")
    path.symlink_to(real)
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert path.is_symlink()
    assert real.read_text() == "new"
    assert list(real.parent.iterdir()) == [real]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_not_replaced(path):
    os.mkfifo(path)
    with pytest.raises(FileAccessError, match="cannot be written: it is a device or a pipe"):
        GMIL().save(path)
    assert stat.S_ISFIFO(path.stat().st_mode)


# -------------------------------------------------------------------------------- a full disk


def full_disk(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def save_model(folder):
    GMIL().save(folder / "model.gmil")


def save_report(folder):
    from gmil.reporting.result import Report

    report = Report(None)
    report.to_json = lambda: "{}"
    report.save(folder / "report.json")


def save_rows(folder):
    from gmil.paper.runs.store import Store, table_of

    Store(folder).write("job", table_of([]))


def save_bags(folder):
    from gmil.datasets import write

    write(folder / "bags.csv", *make_bags(4, random_state=0, return_X_y=True))


@pytest.mark.parametrize("save", [save_model, save_report, save_rows, save_bags])
def test_a_full_disk_is_told_with_the_file_and_the_fix(save, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", full_disk)  # the last moment at which a disk may say so
    with pytest.raises(FileAccessError, match=r"cannot be written: No space left on device\. Free some") as caught:
        save(tmp_path)
    assert isinstance(caught.value, GmilError)
    assert str(tmp_path) in str(caught.value)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_full_disk_at_the_first_byte(path, monkeypatch):
    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(FileAccessError, match=r"model\.gmil cannot be written: No space left"):
        GMIL().save(path)


WITH_SMALL_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
from gmil.cli.main import main
for command in sys.argv[1:]:
    try:
        main(command.split())
    except SystemExit as end:
        print(end.code, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes are those of POSIX")
def test_commands_name_the_file_that_cannot_grow(tmp_path):
    """One process runs all commands, since it takes seconds to start."""
    commands = {
        "out.gmil": "fit musk1 --method gmil -o",
        **{f"out.{s}": "data convert musk1" for s in ("csv", "npz", "parquet")},
    }
    done = subprocess.run(
        [sys.executable, "-c", WITH_SMALL_FILES, *(f"{command} {name}" for name, command in commands.items())],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    told = " ".join(done.stderr.split())
    for name in commands:
        assert re.search(rf"{name} cannot be written: File too large\. Choose [^\n]*? 1( |$)", told), told
    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------- what killed processes leave

KILLED_WRITER = """
import os, sys
from gmil.safety.atomic import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print(temporary, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer(path):
    """Yield a process that is in the middle of writing the file, and the name of its temporary file."""
    command = [sys.executable, "-c", KILLED_WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_what_a_killed_writer_left_goes_with_the_next_write(writer, path):
    process, temporary = writer
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert temporary.exists()
    GMIL().save(path.with_name("another.gmil"))
    assert temporary.exists()  # the file of another target is nobody's business
    GMIL().save(path)
    assert sorted(file.name for file in path.parent.iterdir()) == ["another.gmil", "model.gmil"]


def test_what_a_living_process_writes_stays(writer, path):
    process, temporary = writer
    GMIL().save(path)
    assert remove_leftovers(path.parent) == 0
    assert temporary.read_text() == "half"
    process.communicate("")
    assert process.returncode == 0
    assert path.read_text() == "half"


def test_files_of_other_machines_go_by_their_age(path):
    elsewhere = path.with_name(f".model-gmil-tmp-01234567-{2**22 + 1}-abc.gmil")
    elsewhere.touch()
    GMIL().save(path)
    assert elsewhere.exists()
    os.utime(elsewhere, (time.time() - 90_000,) * 2)
    GMIL().save(path)
    assert not elsewhere.exists()


def test_other_hidden_files_stay(path):
    others = [path.with_name(name) for name in (".model-abc.gmil", ".model-gmil-tmp-notes.gmil", "model.gmil.bak")]
    for other in others:
        other.touch()
        os.utime(other, (0, 0))
    GMIL().save(path)
    assert all(other.exists() for other in others)


def test_long_names_leave_room_for_the_process(tmp_path):
    target = tmp_path / f"{'ä' * 120}.gmil"
    GMIL().save(target)
    assert list(tmp_path.iterdir()) == [target]


def test_own_files_are_never_taken_for_leftovers(path):
    temporary = make_temporary(path)
    os.utime(temporary, (0, 0))
    assert remove_leftovers(path.parent) == 0


# -------------------------------------------------------------------------------- reaching the disk


def test_files_are_flushed_through_a_handle_that_writes_and_so_is_their_folder(path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append((os.fstat(handle), _may_write(handle))))
    GMIL().save(path)
    file, *folders = flushed
    assert file[0].st_ino == path.stat().st_ino
    assert file[1]
    assert [found.st_ino for found, _ in folders] == ([path.parent.stat().st_ino] if os.name == "posix" else [])


def _may_write(handle):
    import fcntl

    return fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
