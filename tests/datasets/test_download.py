from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import http.server
import os
import threading
import time
import urllib.request
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.io

from gmil import datasets
from gmil.datasets import download, registry, transfer
from gmil.errors import DatasetError

if TYPE_CHECKING:
    from pathlib import Path

BODY = b"multiple instances " * 5000
GOOD = hashlib.sha256(BODY).hexdigest()


class Server:
    """Answers requests one after the other as told: a status, "cut" for half a body, "slow" or "slow headers"."""

    def __init__(self) -> None:
        self.plan: list[int | str] = []
        self.asked = 0
        self.body = BODY
        self.promised = self.location = ""


def drip(file, data):
    """Send a byte now and then, so that no single wait is long, until nobody listens."""
    with contextlib.suppress(OSError):
        for place in range(len(data)):
            file.write(data[place : place + 1])
            time.sleep(0.05)


@pytest.fixture
def server():
    state = Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            step = state.plan[min(state.asked, len(state.plan) - 1)] if state.plan else 200
            state.asked += 1
            self.send_response(200 if isinstance(step, str) else step)
            self.send_header("Content-Length", state.promised or str(len(state.body)))
            if state.location:
                self.send_header("Location", state.location)
            if step == "slow headers":
                drip(self.wfile, b"X-Slow: " + b"x" * 300)
            self.end_headers()
            if step == "slow":
                drip(self.wfile, state.body)
            if step == "cut":
                self.wfile.write(state.body[: len(state.body) // 2])
            elif step == 200:
                self.wfile.write(state.body)

        def log_message(self, *arguments):
            pass

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{listener.server_address[1]}/file.mat"
    yield state
    listener.shutdown()
    listener.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def assert_nothing_left(folder: Path) -> None:
    assert list(folder.iterdir()) == []


def test_success(server, tmp_path):
    target = tmp_path / "new" / "folder" / "file.mat"
    download.download(server.url, target, GOOD)
    assert target.read_bytes() == BODY
    assert list(target.parent.iterdir()) == [target]
    assert server.asked == 1


def test_file_address(tmp_path):
    (tmp_path / "there").write_bytes(BODY)
    download.download((tmp_path / "there").as_uri(), tmp_path / "here", GOOD)
    assert (tmp_path / "here").read_bytes() == BODY


def test_wrong_checksum_is_not_kept_and_not_tried_again(server, tmp_path):
    with pytest.raises(DatasetError, match=f"SHA-256 is {GOOD}, not {'0' * 64}"):
        download.download(server.url, tmp_path / "file.mat", "0" * 64, delays=(0, 0))
    assert server.asked == 1
    assert_nothing_left(tmp_path)


def test_wrong_checksum_leaves_an_older_file_alone(server, tmp_path):
    (tmp_path / "file.mat").write_text("older")
    with pytest.raises(DatasetError, match="SHA-256"):
        download.download(server.url, tmp_path / "file.mat", "0" * 64)
    assert (tmp_path / "file.mat").read_text() == "older"


@pytest.mark.parametrize("trouble", [503, 429, "cut", "none"])
def test_passing_trouble_is_tried_again(trouble, server, tmp_path):
    server.plan = [trouble, trouble, 200]
    download.download(server.url, tmp_path / "file.mat", GOOD, delays=(0, 0))
    assert (tmp_path / "file.mat").read_bytes() == BODY
    assert server.asked == 3


def test_lasting_trouble_ends_in_one_error(server, tmp_path):
    server.plan = [503]
    with pytest.raises(DatasetError, match=r"HTTP Error 503.*put the file file\.mat into"):
        download.download(server.url, tmp_path / "file.mat", GOOD, delays=(0, 0))
    assert server.asked == 3
    assert_nothing_left(tmp_path)


def test_interrupted_transfer_ends_in_one_error(server, tmp_path):
    server.plan = ["cut"]
    with pytest.raises(DatasetError, match=f"closed after {len(BODY) // 2} of {len(BODY)} bytes"):
        download.download(server.url, tmp_path / "file.mat", GOOD, delays=(0,))
    assert_nothing_left(tmp_path)


def test_wrong_address_is_not_tried_again(server, tmp_path):
    server.plan = [404]
    with pytest.raises(DatasetError, match="HTTP Error 404"):
        download.download(server.url, tmp_path / "file.mat", GOOD, delays=(0, 0))
    assert server.asked == 1
    assert_nothing_left(tmp_path)


def test_no_network_says_what_to_do(tmp_path):
    with pytest.raises(DatasetError, match=r"refused.*put the file file\.mat into .*GMIL_DATA_HOME"):
        download.download("http://127.0.0.1:9/x", tmp_path / "file.mat", GOOD, delays=(0,))
    assert_nothing_left(tmp_path)


def test_delays_grow_and_are_kept(server, tmp_path, monkeypatch):
    waited = []
    clock = SimpleNamespace(sleep=waited.append, monotonic=time.monotonic)  # other threads sleep, too
    monkeypatch.setattr(download, "time", clock)
    server.plan = [500]
    with pytest.raises(DatasetError, match="500"):
        download.download(server.url, tmp_path / "file.mat", GOOD)
    assert waited == list(download.DELAYS)
    assert waited == sorted(waited)


@pytest.mark.parametrize("blow", [KeyboardInterrupt, MemoryError])
def test_nothing_stays_after_a_blow(blow, server, tmp_path, monkeypatch):
    def strike(response, size):
        assert len(list(tmp_path.iterdir())) == 1  # the temporary file
        raise blow

    monkeypatch.setattr(download, "_refuse_partial", strike)
    with pytest.raises(blow):
        download.download(server.url, tmp_path / "file.mat", GOOD)
    assert_nothing_left(tmp_path)


def test_endless_file_is_refused(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_MOST_BYTES", 100)
    with pytest.raises(DatasetError, match="larger than"):
        download.download(server.url, tmp_path / "file.mat", GOOD)
    assert_nothing_left(tmp_path)


@pytest.mark.parametrize("promised", ["abc", "-1", "1e3"])
def test_a_length_that_is_no_number_changes_nothing(promised, server, tmp_path):
    server.promised = promised
    download.download(server.url, tmp_path / "file.mat", GOOD, delays=())
    assert (tmp_path / "file.mat").read_bytes() == BODY


@pytest.mark.parametrize("trouble", ["slow", "slow headers"])
def test_a_dripping_server_has_a_limit(trouble, server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_MOST_SECONDS", 0.5)
    server.plan = [trouble]
    start = time.monotonic()
    with pytest.raises(DatasetError, match="sends too slowly"):
        download.download(server.url, tmp_path / "file.mat", GOOD, delays=(0, 0))
    assert time.monotonic() - start < 10
    assert server.asked == 1
    assert_nothing_left(tmp_path)


def test_redirects_lead_to_the_web_alone(server, tmp_path):
    server.plan, server.location = [302], "ftp://127.0.0.1:9/file.mat"
    with pytest.raises(DatasetError, match=r"leads to ftp://.*only to http and https"):
        download.download(server.url, tmp_path / "file.mat", GOOD, delays=(0,))
    server.plan, server.location = [302, 200], server.url
    download.download(server.url, tmp_path / "file.mat", GOOD, delays=())
    assert (tmp_path / "file.mat").read_bytes() == BODY


def test_redirects_do_not_leave_https():
    request = urllib.request.Request("https://example.org/file.mat")
    follow = transfer._Redirects().redirect_request
    with pytest.raises(DatasetError, match="from https only to https"):
        follow(request, None, 302, "Found", {}, "http://example.org/file.mat")
    assert follow(request, None, 302, "Found", {}, "https://example.org/b").full_url == "https://example.org/b"


def test_a_full_disk_is_not_the_fault_of_the_network(server, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(download, "_refuse_endless", full)
    with pytest.raises(DatasetError, match=r"data folder .* cannot be written to: .*No space left.*GMIL_DATA_HOME"):
        download.download(server.url, tmp_path / "file.mat", GOOD, delays=(0, 0))
    assert server.asked == 1
    assert_nothing_left(tmp_path)


def test_folder_that_cannot_be_made(server, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DatasetError, match=r"cannot be written to.*GMIL_DATA_HOME"):
        download.download(server.url, tmp_path / "file" / "sub" / "file.mat", GOOD)
    assert server.asked == 0


def test_fetch_downloads_once(server, tmp_path, monkeypatch):
    """The whole way, with a data set of two bags in place of Fox."""
    source = tmp_path / "source.mat"
    variables = {
        "features": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        "bag_ids": np.array([[1.0, 1.0, 2.0]]),
        "labels": np.array([[1.0, 1.0, -1.0]]),
    }
    scipy.io.savemat(source, variables)
    server.body = source.read_bytes()
    info = dataclasses.replace(
        datasets.describe("fox"),
        url=server.url,
        sha256=hashlib.sha256(server.body).hexdigest(),
        n_bags=2,
        n_positive=1,
        n_instances=3,
        n_features=2,
    )
    monkeypatch.setitem(registry.REGISTRY, "fox", info)
    home = tmp_path / "home"
    for _ in range(2):
        bags, y = datasets.fetch_fox(data_home=home, return_X_y=True)
        assert bags.sizes.tolist() == [2, 1]
        assert bags.bag_ids.tolist() == [1, 2]
        assert y.tolist() == [1, 0]
    assert server.asked == 1
    assert [path.name for path in home.iterdir()] == ["file.mat"]


def test_concurrent_downloads_agree(server, tmp_path):
    errors: list[Exception] = []

    def fetch():
        try:
            download.download(server.url, tmp_path / "file.mat", GOOD)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=fetch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    with contextlib.closing((tmp_path / "file.mat").open("rb")) as file:
        assert file.read() == BODY
    assert len(list(tmp_path.iterdir())) == 1
