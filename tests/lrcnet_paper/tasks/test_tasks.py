"""Laws that every task obeys, the description of a split, the measures, and the search for files."""

import dataclasses
import hashlib
import math
import subprocess
import sys

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

from lrcnet_paper.tasks import TASKS, Samples, data_folders, find, losses_and_metrics
from lrcnet_paper.tasks.data_folders import cache_folder, find_file
from lrcnet_paper.tasks.sources import SOURCES
from lrcnet_paper.tasks.task import ANY_NUMBER

EVERY = [find(name, variant) for name in TASKS for variant in TASKS[name].variants]
each_task = pytest.mark.parametrize("task", EVERY, ids=lambda t: f"{t.name}/{t.variant}")


@each_task
def test_description_is_complete_and_frozen(task):
    assert task.variant in task.variants
    assert task.title
    assert task.citation
    assert task.licence
    assert task.notes
    assert task.length > 0
    assert task.output_size > 0
    assert (task.input_size == 0) == (task.vocabulary > 0)
    assert {"train", "test"} <= set(task.splits) <= {"train", "validation", "test"}
    assert min(task.splits.values()) > 0 or set(task.splits.values()) == {ANY_NUMBER}
    assert task.metric in task.metrics
    assert (task.recipe.epochs is None) != (task.recipe.iterations is None)
    assert (task.recipe.rho is None) == (task.recipe.optimizer != "rmsprop")
    assert task.recipe.reported == ("best-validation" if "validation" in task.splits else "last")
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.name = "other"
    with pytest.raises(TypeError):
        task.splits["train"] = 1


@each_task
def test_loss_and_metrics_judge_outputs_of_the_stated_shape(task):
    generator = torch.Generator().manual_seed(0)
    steps = (4,) if task.kind.endswith("sequence") else (4, task.length)
    shape = steps if task.kind.startswith("steering") else (*steps, task.output_size)
    # A curvature is at most a few hundredths of 1/m.
    scale = 0.01 if task.kind.startswith("steering") else 1.0
    output = (scale * torch.randn(shape, generator=generator)).requires_grad_()
    if task.kind.startswith(("trajectory", "steering")):
        target = scale * torch.randn(shape, generator=generator)
    else:
        target = torch.randint(max(task.output_size, 2), steps, generator=generator)
    loss = task.loss(output, target)
    loss.backward()
    assert loss.ndim == 0
    assert output.grad.abs().sum() > 0
    for metric in task.metrics.values():
        assert 0 <= metric(output, target) <= 10
    with pytest.raises(ValueError, match="output must have"):
        task.loss(output[:-1], target)


@each_task
def test_unknown_split_lists_the_valid_ones(task):
    with pytest.raises(ValueError, match=r"must be one of \['train', .*'test'\]; got 'dev'"):
        task.load("dev")


@pytest.mark.parametrize(
    ("name", "optimizer", "batch", "epochs", "reported"),
    [
        ("neural-ode", "adam", 16, None, "last"),
        ("person", "rmsprop", 128, 100, "last"),
        ("imdb", "adam", 64, 30, "best-validation"),
        ("psmnist", "rmsprop", 64, 200, "best-validation"),
    ],
)
def test_recipes_are_the_protocols(name, optimizer, batch, epochs, reported):
    recipe = TASKS[name].recipe
    assert (recipe.optimizer, recipe.batch_size, recipe.epochs, recipe.reported) == (optimizer, batch, epochs, reported)
    assert (recipe.learning_rate, recipe.eps) == (1e-3, 1e-7)
    assert recipe.rho == (0.9 if optimizer == "rmsprop" else None)


@pytest.mark.parametrize("variant", TASKS["neural-ode"].variants)
def test_neural_ode_splits_share_one_trajectory(variant):
    task = find("neural-ode", variant)
    train, test = task.load("train"), task.load("test")
    assert train.x.shape == (985, 2)
    assert train.y.shape == (985, 16, 2)
    assert test.y.shape == (1, 1000, 2)
    assert torch.equal(train.y[984], test.y[0, 984:])
    assert torch.equal(train.x, train.y[:, 0])
    assert torch.equal(test.x, test.y[:, 0])


def test_unknown_names_list_the_valid_ones():
    with pytest.raises(
        ValueError,
        match=r"task must be one of neural-ode, person, imdb, psmnist, driving.*or a file .*'cifar'",
    ):
        find("cifar")
    with pytest.raises(ValueError, match="variant of imdb must be one of text, ranks, keras, but is 'bert'"):
        find("imdb", "bert")


def test_samples_feed_a_data_loader_by_whole_batches():
    samples = Samples(torch.arange(10.0)[:, None], torch.arange(10.0), torch.arange(10))
    loader = DataLoader(samples, sampler=BatchSampler(SequentialSampler(samples), 4, drop_last=False), batch_size=None)
    batches = list(loader)
    assert [len(x) for x, _, _ in batches] == [4, 4, 2]
    assert torch.cat([y for _, _, y in batches]).tolist() == list(range(10))
    regular = Samples(samples.x, None, samples.y)
    assert next(iter(DataLoader(regular, sampler=[[1, 2]], batch_size=None)))[1] is None
    assert regular[3][2] == 3
    assert len(Samples(*samples[2:5])) == 3


def test_samples_of_different_number_are_refused():
    with pytest.raises(ValueError, match=r"same number of samples; they hold \{'x': 2, 'y': 2, 'dt': 3\}"):
        Samples(torch.zeros(2), torch.zeros(3), torch.zeros(2))


def test_measures_have_their_values_by_hand():
    logits = torch.tensor([[[2.0, 0.0], [0.0, 2.0]]])
    labels = torch.tensor([[0, 0]])
    assert losses_and_metrics.accuracy(logits, labels) == 0.5
    expected = (math.log(1 + math.exp(-2)) + math.log(1 + math.exp(2))) / 2
    assert losses_and_metrics.cross_entropy(logits, labels).item() == pytest.approx(expected)
    logit, label = torch.tensor([[0.3], [-1.0], [0.7], [0.2]]), torch.tensor([1, 0, 1, 0])
    assert losses_and_metrics.binary_accuracy(logit, label) == 0.75
    assert losses_and_metrics.binary_accuracy_above_half(logit, label) == 0.75
    assert losses_and_metrics.binary_accuracy_above_half(logit[:1], label[:1]) == 0
    assert losses_and_metrics.mean_absolute_error(torch.tensor([1.0, -1.0]), torch.zeros(2)) == 1


def test_data_is_looked_for_in_argument_then_environment_then_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(data_folders, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("LRCNET_DATA", raising=False)
    with pytest.raises(
        FileNotFoundError, match=r"cache; get the official files with `lrcnet data get psmnist`, or point"
    ):
        find_file("psmnist", ["x"])
    files = {where: tmp_path / where / "mnist" / "x" for where in ("cache", "named", "given")}
    for file in files.values():
        file.parent.mkdir(parents=True)
    files["cache"].touch()
    monkeypatch.setenv("LRCNET_DATA", str(tmp_path / "named"))
    assert find_file("psmnist", ["y", "x"]) == files["cache"], "a named folder without the file is passed over"
    files["named"].touch()
    assert find_file("psmnist", ["y", "x"]) == files["named"]
    files["given"].touch()
    assert find_file("psmnist", ["y", "x"], tmp_path / "given") == files["given"]


def test_explicit_folder_is_the_only_one_searched(tmp_path, monkeypatch):
    (tmp_path / "named/mnist").mkdir(parents=True)
    (tmp_path / "named/mnist/x").touch()
    monkeypatch.setenv("LRCNET_DATA", str(tmp_path / "named"))
    with pytest.raises(FileNotFoundError, match=r"which is not in .*given;"):
        find_file("psmnist", ["x"], tmp_path / "given")


def test_tasks_own_folder_and_single_files_will_do(tmp_path):
    file = tmp_path / SOURCES["psmnist"].files[0].name
    file.touch()
    assert find_file("psmnist", [file.name], tmp_path) == file
    assert find_file("psmnist", [file.name], file) == file


@each_task
def test_task_is_available_once_its_files_exist_and_names_missing_files_before(task, tmp_path, monkeypatch):
    monkeypatch.setattr(data_folders, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setenv("LRCNET_DATA", str(tmp_path / "named"))
    for data in (None, tmp_path / "given"):
        for names in task.files:
            assert not task.available(data)
            assert " or ".join(names) in task.missing(data)
            assert f"lrcnet data get {task.name}" in task.missing(data)
            file = (data or tmp_path / "named") / SOURCES[task.name].folder / names[-1]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()  # an empty file: nothing is read to answer
        assert task.available(data)
        assert task.missing(data) == ""


@pytest.mark.parametrize("name", ["aclImdb_v1.tar.gz", "aclImdb"])
def test_files_beside_the_given_one_are_available(tmp_path, name):
    reviews = tmp_path / name
    reviews.touch()
    assert "needs imdb_word_index.json" in find("imdb").missing(reviews)
    (tmp_path / "imdb_word_index.json").touch()
    assert find("imdb").available(reviews)


@pytest.mark.parametrize(
    ("platform", "variable", "end"),
    [("linux", "XDG_CACHE_HOME", "base/lrcnet"), ("win32", "LOCALAPPDATA", "base/lrcnet"), ("darwin", "X", "lrcnet")],
)
def test_cache_folder_is_the_systems(tmp_path, monkeypatch, platform, variable, end):
    monkeypatch.setattr(data_folders.sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path / "base"))
    assert cache_folder().as_posix().endswith(end)


@pytest.mark.parametrize("name", SOURCES)
def test_sources_are_official_and_checked(name):
    source = SOURCES[name]
    assert source.task == name
    for file in source.files:
        if file.name in ("set-a.tar.gz", "set-b.tar.gz"):
            # PhysioNet publishes no checksum of its archives; their reader checks every stay.
            assert file.checksum == ""
            continue
        kind, _, digest = file.checksum.partition(":")
        # Of this one only an MD5 is published.
        assert kind == ("md5" if file.name == "ConfLongDemo_JSI.txt" else "sha256")
        assert len(digest) == {"sha256": 64, "md5": 32}[kind]
        assert all(url.startswith("https://") for url in file.urls)


def test_task_without_files_has_no_source():
    with pytest.raises(ValueError, match=r"must be one of \['person', 'imdb', 'psmnist', .*\]; got 'neural-ode'"):
        find_file("neural-ode", ["x"])


@pytest.mark.parametrize("name", SOURCES)
def test_real_files_have_the_official_checksums(real_data, name):
    present = [f for f in SOURCES[name].files if (real_data / SOURCES[name].folder / f.name).exists()]
    if not present:
        pytest.skip(f"no official file of {name} is in {real_data.name}")
    for file in present:
        kind, _, digest = file.checksum.partition(":")
        content = (real_data / SOURCES[name].folder / file.name).read_bytes()
        assert hashlib.new(kind, content).hexdigest() == digest


@pytest.mark.parametrize("name", SOURCES)
def test_given_files_have_the_checksums_listed_beside_them(real_data, real_file, name):
    lines = [line.split() for line in real_file("SHA256SUMS").read_text().splitlines()]
    listed = {real_data / path: digest for digest, path in lines}
    files = [path for path in listed if path.parent.name == SOURCES[name].folder and path.exists()]
    if not files:
        pytest.skip(f"no listed file of {name} is in {real_data.name}")
    for path in files:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == listed[path], path.name


def test_import_is_light():
    code = (
        "import sys, lrcnet_paper.tasks, lrcnet_paper.tasks.download; "
        "print([m for m in ('pooch', 'tqdm', 'scipy', 'requests', 'pandas') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # torch itself may import tqdm; these modules must not.
    assert set(eval(result.stdout)) <= {"tqdm"}
