"""Files appear whole or not at all, and nothing but a file is replaced."""

from __future__ import annotations

import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gmil import GMIL
from gmil.errors import FileAccessError
from gmil.files import replacing


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
