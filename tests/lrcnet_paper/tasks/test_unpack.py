"""Good archives are unpacked; truncated and malicious ones are refused."""

import io
import tarfile
import zipfile

import pytest

from lrcnet_paper.tasks.unpack import unpack


def tar(path, *members, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, content, *kind in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if kind:
                info.type, info.linkname, info.size = kind[0], content.decode(), 0
            archive.addfile(info, io.BytesIO(content))
    return path


def make_zip(path, *members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content, *mode in members:
            info = zipfile.ZipInfo(name)
            if mode:
                info.external_attr = mode[0] << 16
            archive.writestr(info, content)
    return path


def everything_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def open_and_close(archive, scratch):
    with unpack(archive, scratch):
        pass


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_tar_is_unpacked(tmp_path, mode):
    archive = tar(tmp_path / "a.tar", ("x/y.txt", b"one"), ("z.txt", b"two"), mode=mode)
    with unpack(archive, tmp_path) as content:
        assert everything_in(content) == ["x", "x/y.txt", "z.txt"]
        assert (content / "x/y.txt").read_bytes() == b"one"
    assert everything_in(tmp_path) == ["a.tar"]


def test_the_unpacked_folder_is_deleted_after_an_error_too(tmp_path):
    archive = tar(tmp_path / "a.tar", ("x", b"1"))
    with pytest.raises(KeyError), unpack(archive, tmp_path):
        raise KeyError
    assert everything_in(tmp_path) == ["a.tar"]


def test_zip_is_unpacked(tmp_path):
    archive = make_zip(tmp_path / "a.zip", ("x/", b""), ("x/y.txt", b"one"))
    with unpack(archive, tmp_path) as content:
        assert (content / "x/y.txt").read_bytes() == b"one"


ESCAPES = ["../evil", "x/../../evil", "/tmp/lrcnet-evil", "..\\evil", "C:\\evil", "C:evil", "\\\\host\\evil"]


@pytest.mark.parametrize("name", ESCAPES)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_no_path_leaves_the_folder(tmp_path, kind, name):
    inner = tmp_path / "inner"
    inner.mkdir()
    make = tar if kind == "tar" else make_zip
    archive = make(inner / "a", ("fine.txt", b"fine"), (name, b"evil"))
    with pytest.raises(ValueError, match="must stay inside the folder"):
        open_and_close(archive, inner)
    assert everything_in(tmp_path) == ["inner", "inner/a"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_tar_links_and_devices_are_refused(tmp_path, kind):
    archive = tar(tmp_path / "a.tar", ("link", b"/etc", kind), ("link/evil", b"evil"))
    with pytest.raises(ValueError, match="'link' is a link or a device"):
        open_and_close(archive, tmp_path)
    assert everything_in(tmp_path) == ["a.tar"]


def test_zip_links_are_refused(tmp_path):
    archive = make_zip(tmp_path / "a.zip", ("link", b"/etc", 0o120777))
    with pytest.raises(ValueError, match="'link' is a link"):
        open_and_close(archive, tmp_path)
    assert everything_in(tmp_path) == ["a.zip"]


@pytest.mark.parametrize("members", [(("a", b"1"), ("a", b"2")), (("a", b"1"), ("a/b", b"2"))])
def test_a_second_file_of_one_name_is_refused(tmp_path, members):
    archive = tar(tmp_path / "a.tar", *members)
    with pytest.raises(ValueError, match="must name each file once"):
        open_and_close(archive, tmp_path)
    assert everything_in(tmp_path) == ["a.tar"]


@pytest.mark.parametrize("kind", ["tar.gz", "tar.xz", "zip", "empty", "noise"])
def test_archive_that_is_cut_off_leaves_nothing(tmp_path, kind):
    # Compressible content would leave nothing to cut in the middle of a file.
    content = bytes(i * i * 31 % 251 for i in range(50_000))
    archive = tmp_path / "a"
    if kind == "zip":
        make_zip(archive, ("x", content))
    elif kind.startswith("tar"):
        tar(archive, ("x", content), mode="w:" + kind[4:])
    whole = {"empty": b"", "noise": content}.get(kind) if kind in ("empty", "noise") else archive.read_bytes()
    archive.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="must be a complete tar or zip archive"):
        open_and_close(archive, tmp_path)
    assert everything_in(tmp_path) == ["a"]
