"""Downloads from a server on this machine: good ones, broken-off ones, wrong ones."""

import hashlib
import http.server
import io
import os
import threading
import time
import zipfile
from pathlib import Path

import pytest

from lrcnet.cli import main
from lrcnet_paper.tasks import data_folders, download, sources
from lrcnet_paper.tasks.sources import RemoteFile, Source

pytest.importorskip("pooch", reason="downloads need pooch")

GOOD = b"0123456789" * 20_000


def make_zip(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return buffer.getvalue()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves a few fixed answers and records the requests."""

    pages: dict[str, bytes] = {}  # noqa: RUF012
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self):
        self.asked.append(self.path)
        if self.path not in self.pages:
            self.send_error(404)
            return
        content = self.pages[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        # A transfer that breaks off: half of the bytes that the header states, then the connection closes.
        self.wfile.write(content[: len(content) // 2] if "broken" in self.path else content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(Handler, "asked", [])
    monkeypatch.setattr(
        Handler,
        "pages",
        {
            "/good.bin": GOOD,
            "/broken.bin": GOOD,
            "/wrong.bin": GOOD[:-1] + b"x",
            "/good.zip": make_zip(inner__good=b"", **{"inner__file.bin": GOOD}),
            "/wrong.zip": make_zip(**{"file.bin": b"other"}),
            "/empty.zip": make_zip(readme=b"nothing"),
            "/evil.zip": make_zip(**{"..__..__evil": b"x", "file.bin": GOOD}),
            "/cut.zip": make_zip(**{"file.bin": GOOD})[:100],
        },
    )
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    thread.join()
    httpd.server_close()


@pytest.fixture
def offer(server, monkeypatch):
    """Let `psmnist` consist of one file that some paths of the server offer."""

    def make(*paths: str, checksum: str = f"sha256:{hashlib.sha256(GOOD).hexdigest()}") -> None:
        file = RemoteFile("file.bin", tuple(server + path for path in paths), checksum, 0.2)
        monkeypatch.setattr(sources, "SOURCES", {"psmnist": Source("psmnist", "mnist", (file,), "", "", "")})

    return make


def everything_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.mark.parametrize("path", ["/good.bin", "/good.zip"])
def test_file_arrives_whole_and_alone(offer, tmp_path, path):
    offer(path)
    assert download.get("psmnist", tmp_path, progress=False) == tmp_path / "mnist"
    assert (tmp_path / "mnist/file.bin").read_bytes() == GOOD
    assert everything_in(tmp_path) == ["mnist", "mnist/file.bin"]
    assert download.file_states("psmnist", tmp_path) == {"file.bin": "intact"}


def test_md5_is_a_checksum_too(offer, tmp_path):
    offer("/good.bin", checksum=f"md5:{hashlib.md5(GOOD).hexdigest()}")
    download.get("psmnist", tmp_path, progress=False)
    assert (tmp_path / "mnist/file.bin").read_bytes() == GOOD


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/broken.bin", "(?i)incompleteread|broken"),
        ("/wrong.bin", "hash"),
        ("/absent.bin", "404"),
        ("/wrong.zip", "file.bin must have the checksum sha256:.* and has sha256:"),
        ("/empty.zip", "must hold file.bin and does not"),
        ("/evil.zip", "must stay inside the folder"),
        ("/cut.zip", "must be a complete tar or zip archive"),
    ],
)
def test_failed_download_leaves_nothing_and_says_why(offer, tmp_path, path, reason):
    offer(path)
    with pytest.raises(download.DownloadError, match=reason) as caught:
        download.get("psmnist", tmp_path, progress=False)
    assert "file.bin could not be downloaded, and nothing was kept" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert everything_in(tmp_path) == ["mnist"]
    assert download.file_states("psmnist", tmp_path) == {"file.bin": "missing"}


def test_next_address_is_tried_when_one_fails(offer, tmp_path):
    offer("/absent.bin", "/broken.bin", "/wrong.bin", "/good.bin")
    download.get("psmnist", tmp_path, progress=False)
    assert (tmp_path / "mnist/file.bin").read_bytes() == GOOD
    assert Handler.asked == ["/absent.bin", "/broken.bin", "/wrong.bin", "/good.bin"]


def test_every_failed_address_is_in_the_message(offer, tmp_path):
    offer("/absent.bin", "/wrong.bin")
    with pytest.raises(download.DownloadError, match=r"absent\.bin.*wrong\.bin"):
        download.get("psmnist", tmp_path, progress=False)


def test_intact_file_is_not_fetched_again_and_a_damaged_one_is_replaced(offer, tmp_path):
    offer("/good.bin")
    download.get("psmnist", tmp_path, progress=False)
    download.get("psmnist", tmp_path, progress=False)
    assert Handler.asked == ["/good.bin"]
    (tmp_path / "mnist/file.bin").write_bytes(GOOD[:100])
    assert download.file_states("psmnist", tmp_path) == {"file.bin": "other"}
    download.get("psmnist", tmp_path, progress=False)
    assert (tmp_path / "mnist/file.bin").read_bytes() == GOOD


def test_a_failed_download_keeps_the_existing_file(offer, tmp_path):
    offer("/broken.bin")
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist/file.bin").write_bytes(b"mine")
    with pytest.raises(download.DownloadError):
        download.get("psmnist", tmp_path, progress=False)
    assert (tmp_path / "mnist/file.bin").read_bytes() == b"mine"


def test_unreachable_server_is_a_clear_error(offer, tmp_path, monkeypatch):
    file = RemoteFile("file.bin", ("http://127.0.0.1:9/file.bin",), "sha256:0", 0.2)
    monkeypatch.setattr(sources, "SOURCES", {"psmnist": Source("psmnist", "mnist", (file,), "", "", "")})
    with pytest.raises(download.DownloadError, match="put the file into"):
        download.get("psmnist", tmp_path, progress=False)


def test_progress_bar_counts_to_the_end(offer, tmp_path, capfd):
    pytest.importorskip("tqdm", reason="the bar needs tqdm")
    offer("/good.bin")
    download.get("psmnist", tmp_path, progress=True)
    assert "100%" in capfd.readouterr().err


def test_folder_comes_from_argument_then_environment_then_cache(offer, tmp_path, monkeypatch):
    offer("/good.bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.platform", "linux")
    origin = sources.find_source("psmnist")
    monkeypatch.delenv("LRCNET_DATA", raising=False)
    assert download.target_folder(origin) == tmp_path / "cache/lrcnet/mnist"
    monkeypatch.setenv("LRCNET_DATA", str(tmp_path / "named"))
    assert download.target_folder(origin) == tmp_path / "named/mnist"
    assert download.target_folder(origin, tmp_path / "given") == tmp_path / "given/mnist"


def test_leftovers_of_a_killed_download_are_removed_after_a_day(offer, tmp_path):
    offer("/good.bin")
    long_ago = time.time() - 2 * 24 * 3600
    for name in ("killed", "alive"):
        scratch = tmp_path / "mnist" / f".downloading-{name}"
        scratch.mkdir(parents=True)
        (scratch / "file.bin").write_bytes(b"half")
        os.utime(scratch, (long_ago, long_ago))
    # A slow download changes its file, not its folder.
    os.utime(tmp_path / "mnist/.downloading-killed/file.bin", (long_ago, long_ago))
    download.get("psmnist", tmp_path, progress=False)
    names = sorted(path.name for path in (tmp_path / "mnist").iterdir())
    assert names == [".downloading-alive", "file.bin"]


@pytest.fixture
def two_folders(tmp_path, monkeypatch):
    """The folders of LRCNET_DATA and of the cache."""
    monkeypatch.setattr(data_folders, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setenv("LRCNET_DATA", str(tmp_path / "named"))
    return tmp_path / "named", tmp_path / "cache"


def test_file_states_are_searched_where_the_tasks_search(offer, two_folders):
    offer("/good.bin")
    named, cache = two_folders
    download.get("psmnist", cache, progress=False)
    assert download.file_states("psmnist") == {"file.bin": "intact"}
    (named / "mnist").mkdir(parents=True)
    (named / "mnist/file.bin").write_bytes(b"mine")
    assert download.file_states("psmnist") == {"file.bin": "intact"}
    assert download.file_states("psmnist", named) == {"file.bin": "other"}


def test_the_list_shows_sizes_home_pages_and_readable_variants(two_folders, capsys):
    named, cache = two_folders
    files = (
        named / "imdb/aclImdb_labeled.tar.xz",
        cache / "imdb/imdb_word_index.json",
        named / "person_activity/ConfLongDemo_JSI_A01-A04.csv.xz",
    )
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert main(["data", "list"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"looked in {named}, then {cache}\n")
    person, rest = printed.split("person: ")[1].split("imdb: ")
    imdb, psmnist = rest.split("psmnist: ")
    assert "variants that can be read: a01-a04, a01-a04-clean\n" in person
    assert "ConfLongDemo_JSI.txt, 21.5 MB: not here\n" in person
    assert "home page: https://archive.ics.uci.edu/dataset/196/" in person
    assert "imdb_word_index.json, 1.6 MB: here, with another checksum\n" in imdb
    assert "variants that can be read: text\n" in imdb
    assert "variants that can be read: none\n" in psmnist


@pytest.mark.parametrize(("missing", "progress"), [("pooch", False), ("tqdm", True)])
def test_missing_library_is_named(offer, tmp_path, monkeypatch, missing, progress):
    offer("/good.bin")
    real = download.importlib.util.find_spec
    monkeypatch.setattr(download.importlib.util, "find_spec", lambda name: None if name == missing else real(name))
    with pytest.raises(ImportError, match=rf"downloading needs {missing}; install with `pip install lrcnet\[data\]`"):
        download.get("psmnist", tmp_path, progress=progress)
    assert everything_in(tmp_path) == []


def test_unknown_task_lists_the_valid_ones(tmp_path):
    with pytest.raises(ValueError, match=r"must be one of \['person', 'imdb', 'psmnist', .*\]; got 'neural-ode'"):
        download.get("neural-ode", tmp_path)
