"""The idx reader, the permutation and the splits, on tiny files and on the real ones."""

import dataclasses
import gzip

import numpy as np
import pytest
import torch

from lrcnet_paper.tasks import find, psmnist
from lrcnet_paper.tasks.psmnist import permutation, read_idx

from .conftest import idx

IMAGES = np.random.default_rng(0).integers(0, 256, (7, 28, 28), dtype=np.uint8)
DIGITS = np.array([3, 1, 4, 1, 5, 9, 2])


@pytest.fixture
def mnist(tmp_path, monkeypatch):
    """Seven images as training and as test set, two of them for validation."""
    monkeypatch.setattr(psmnist, "VALIDATION", 2)

    def write(images=IMAGES, digits=DIGITS, suffix=".gz"):
        folder = tmp_path / "mnist"
        folder.mkdir(exist_ok=True)
        for part in ("train", "t10k"):
            for kind, array in (("images-idx3", images), ("labels-idx1", digits)):
                content = idx(array)
                path = folder / f"{part}-{kind}-ubyte{suffix}"
                path.write_bytes(gzip.compress(content) if suffix else content)
        return tmp_path

    return write


SMALL = {"train": 5, "validation": 2, "test": 7}


@pytest.mark.parametrize("suffix", [".gz", ""])
def test_pixels_come_one_per_step_in_the_fixed_order(mnist, suffix):
    data = mnist(suffix=suffix)
    task = dataclasses.replace(find("psmnist"), splits=SMALL)
    test = task.load("test", data)
    assert test.x.shape == (7, 784, 1)
    assert test.x.dtype == torch.float32
    assert test.dt is None
    order = np.random.RandomState(0).permutation(784)
    np.testing.assert_array_equal(test.x[..., 0], IMAGES.reshape(7, 784)[:, order].astype(np.float32) / np.float32(255))
    assert test.y.tolist() == DIGITS.tolist()


def test_last_training_rows_are_for_validation(mnist):
    data = mnist()
    task = dataclasses.replace(find("psmnist"), splits=SMALL)
    assert task.load("train", data).y.tolist() == DIGITS[:5].tolist()
    assert task.load("validation", data).y.tolist() == DIGITS[5:].tolist()


def test_ordered_variant_leaves_the_picture_as_it_is(mnist):
    task = dataclasses.replace(find("psmnist", "ordered"), splits=SMALL)
    x = task.load("test", mnist()).x
    np.testing.assert_array_equal((x * 255).round().to(torch.uint8).numpy().reshape(7, 28, 28), IMAGES)


def test_permutation_is_one_and_moves_things():
    assert sorted(permutation()) == list(range(784))
    assert permutation()[:3].tolist() == np.random.RandomState(0).permutation(784)[:3].tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must begin as an idx file of bytes, 00 00 08; it begins $"),
        (b"\x00\x00\x0d\x01\x00\x00\x00\x00", "it begins 00 00 0d"),
        (idx(IMAGES)[:-1], "must hold 5488 bytes .* and holds 5487"),
        (idx(IMAGES) + b"x", "must hold 5488 bytes .* and holds 5489"),
        (idx(IMAGES)[:6], "and holds 0"),
    ],
)
def test_damaged_idx_file_is_explained(tmp_path, content, message):
    for name, packed in (("plain", content), ("packed.gz", gzip.compress(content))):
        (tmp_path / name).write_bytes(packed)
        with pytest.raises(ValueError, match=message):
            read_idx(tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"noise", gzip.compress(idx(IMAGES))[:-300]])
def test_damaged_gzip_is_explained(tmp_path, content):
    (tmp_path / "x.gz").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.gz must (be a complete gzip file|begin as an idx file)"):
        read_idx(tmp_path / "x.gz")


@pytest.mark.parametrize(
    ("images", "digits", "message"),
    [
        (IMAGES[:, :5], DIGITS, r"must have shapes \(n, 28, 28\) and \(n,\)"),
        (IMAGES, DIGITS[:3], r"they have \(7, 28, 28\) and \(3,\)"),
        (IMAGES, DIGITS + 5, "must hold digits 0 to 9; it holds 14"),
        (IMAGES[:2], DIGITS[:2], "must hold more than 2 images; it holds 2"),
    ],
)
def test_files_that_do_not_fit_are_explained(mnist, images, digits, message):
    with pytest.raises(ValueError, match=message):
        find("psmnist").load("train", mnist(images, digits))


def test_real_files_have_the_protocols_sizes_and_digits(real_data, real_file):
    real_file("mnist")
    task = find("psmnist")
    digits = {split: task.load(split, real_data).y.bincount() for split in task.splits}
    assert {split: int(count.sum()) for split, count in digits.items()} == dict(task.splits)
    assert digits["test"].tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
