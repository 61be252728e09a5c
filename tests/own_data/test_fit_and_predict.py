"""`lrcnet fit`, `predict` and `explain` on tables of every kind, and one sentence for every bad table."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lrcnet
from lrcnet.commands import fit, predict
from lrcnet.own_data.encoding import encode
from lrcnet.own_data.files import read_file
from lrcnet.own_data.fit import describe
from lrcnet.own_data.schema import understand
from lrcnet.own_data.subject import read


def run(module: Any, *arguments: object) -> None:
    parser = argparse.ArgumentParser()
    module.configure(parser)
    assert module.run(parser.parse_args([str(one) for one in arguments])) == 0


def table(count: int = 24, seed: int = 0) -> pd.DataFrame:
    """Return readings of patients: dates with irregular gaps, a level that tells the label, missing values, a ward."""
    rng = np.random.default_rng(seed)
    parts = []
    for i in range(count):
        sick, size = i % 2, int(rng.integers(4, 12))
        minutes = np.cumsum(rng.exponential(30, size) + 1).round()
        level = 70 + 25 * sick + rng.normal(0, 4, size)
        pressure = np.where(rng.random(size) < 0.3, np.nan, 120 + rng.normal(0, 5, size))
        part = {
            "patient": f"p{seed}-{i}",
            "when": (pd.Timestamp("2024-05-01") + pd.to_timedelta(minutes, unit="min")).strftime("%Y-%m-%d %H:%M"),
            "rate": level,
            "pressure": pressure,
            "ward": rng.choice(["A", "B"]),
            "label": "sick" if sick else "well",
            "dose": level * 2 + 3,
        }
        parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


QUICK = ("--epochs", 3, "--units", 4)
CASES: dict[str, tuple[list[str], list[str], set[str]]] = {
    "classes of series": (["dose"], ["--target", "label"], {"patient", "prediction", "probability_sick"}),
    "numbers per reading": (["label"], ["--target", "dose"], {"patient", "when", "prediction"}),
    "forecast": (["label", "dose", "ward"], [], {"patient", "when", "step", "channel", "prediction"}),
}


@pytest.mark.parametrize(("case", "suffix"), [*zip(CASES, ("csv", "csv", "parquet"), strict=True)])
def test_a_long_table_becomes_a_folder_and_predictions(case: str, suffix: str, tmp_path: Path, capsys: Any) -> None:
    drop, flags, columns = CASES[case]
    frame, new = table().drop(columns=drop), table(5, seed=1).drop(columns=drop)
    for name, content in (("readings", frame), ("new", new)):
        path = tmp_path / f"{name}.{suffix}"
        content.to_csv(path, index=False) if suffix == "csv" else content.to_parquet(path)
    long = ("--id", "patient", "--time", "when")
    run(fit, tmp_path / f"readings.{suffix}", *long, *flags, *QUICK, "--out", tmp_path / "model")
    text = capsys.readouterr().out
    for word in ("series    24", "channels", "gaps      median", "LSTM", "gradient boosting"):
        assert word in text
    files = {"config.json", "metrics.json", "model.safetensors", "report.html", "examples.safetensors"}
    assert {path.name for path in (tmp_path / "model").iterdir()} == files
    metrics = json.loads((tmp_path / "model" / "metrics.json").read_text())
    assert len(metrics["models"]) == 4
    run(predict, tmp_path / "model", tmp_path / f"new.{suffix}", "--out", tmp_path / "predictions.csv")
    predictions = pd.read_csv(tmp_path / "predictions.csv")
    assert columns <= set(predictions.columns)
    if case == "numbers per reading":
        assert list(predictions["patient"]) == list(new["patient"])
    if case == "classes of series":
        assert list(predictions["patient"]) == [f"p1-{i}" for i in range(5)]
        np.testing.assert_allclose(predictions.filter(like="probability_").sum(axis=1), 1)
    subject = read(tmp_path / "model")
    assert subject is not None
    subject.write_page(str(tmp_path / "inside.html"), None, None)
    page = (tmp_path / "inside.html").read_text()
    assert "How long its units remember" in page
    assert "pressure was measured" in page
    assert ("accuracy" in page) == (case == "classes of series")  # from the true classes that the folder keeps
    assert ("true dose" in page) == (case == "numbers per reading")
    assert "next: lrcnet predict" in text


def test_a_clear_difference_is_learned_and_the_folder_predicts_as_the_estimator(tmp_path: Path) -> None:
    table(60).drop(columns="dose").to_csv(tmp_path / "readings.csv", index=False)
    table(20, seed=1).drop(columns="dose").to_csv(tmp_path / "new.csv", index=False)
    long = ("--id", "patient", "--time", "when", "--target", "label", "--epochs", 25, "--units", 8)
    run(fit, tmp_path / "readings.csv", *long, "--out", tmp_path / "model")
    run(predict, tmp_path / "model", tmp_path / "new.csv", "--out", tmp_path / "predictions.csv")
    predictions = pd.read_csv(tmp_path / "predictions.csv")
    truth = table(20, seed=1).groupby("patient", sort=False)["label"].first()
    assert (predictions["prediction"].to_numpy() == truth.to_numpy()).mean() > 0.9
    assert isinstance(lrcnet.load(tmp_path / "model"), lrcnet.Classifier)


def test_a_wide_table_with_shorter_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 12)), columns=[f"{c}_{t}" for c in "ab" for t in range(6)])
    frame.loc[3, ["a_4", "a_5", "b_4", "b_5"]] = np.nan
    frame["y"] = np.arange(30) % 2
    frame.to_csv(tmp_path / "wide.csv", index=False)
    run(fit, tmp_path / "wide.csv", "--target", "y", *QUICK, "--out", tmp_path / "model")
    run(predict, tmp_path / "model", tmp_path / "wide.csv", "--out", tmp_path / "p.csv")
    assert list(pd.read_csv(tmp_path / "p.csv").columns) == ["series", "prediction", "probability_0", "probability_1"]


def changed(column: str, row: int, value: Any) -> pd.DataFrame:
    frame = table().astype({column: object})
    frame.loc[row - 1, column] = value
    return frame


def swap_times() -> pd.DataFrame:
    frame = table()
    frame.loc[[1, 2], "when"] = frame.loc[[2, 1], "when"].to_numpy()
    return frame


def repeat_time() -> pd.DataFrame:
    frame = table()
    frame.loc[2, "when"] = frame.loc[1, "when"]
    return frame


def lone_class() -> pd.DataFrame:
    frame = table()
    frame.loc[frame["patient"] == "p0-4", "label"] = "odd"
    return frame


BAD: dict[str, tuple[Any, list[str], str]] = {
    "wrong column": (table(), ["--id", "person"], "must have the column 'person', but has patient, when, rate"),
    "one class": (table().assign(label="well"), [], "'label' must have at least two classes, but all rows are 'well'"),
    "target with NaN": (changed("label", 7, None), [], "'label' must have a value in every row, but row 7 has none"),
    "time not monotone": (swap_times(), [], "'when' must increase within each series, but row 3 is earlier than row 2"),
    "duplicate time": (repeat_time(), [], "'when' must increase .*, but row 3 repeats the time of row 2"),
    "text in numbers": (changed("rate", 9, "high"), [], "'rate' must hold numbers, but row 9 is 'high'"),
    "no date": (changed("when", 5, "noon"), [], "'when' must hold dates .*, but row 5 is 'noon'"),
    "missing id": (changed("patient", 4, None), [], "'patient' must have a value in every row, but row 4 has none"),
    "missing time": (changed("when", 5, None), [], "'when' must have a value in every row, but row 5 has none; fill"),
    "sorted, with a duplicate": (
        pd.concat([repeat_time().iloc[[2]], repeat_time().drop(index=2)]),
        ["--sort"],
        "'when' must increase .*, but row 3 repeats the time of row 1",
    ),
    "empty channel": (table().assign(spare=np.nan), ["--channels", "spare"], "'spare' must hold .*, but has no values"),
    "weights without classes": (table(), ["--target", "dose", "--balanced"], "--balanced is for classes"),
    "infinite": (table().assign(rate=np.inf), [], "'rate' must hold finite numbers, but row 1 is inf"),
    "one series": (table(1), ["--target", "dose"], "'patient' must name at least 10 series"),
    "a class with one series": (lone_class(), [], "needs at least two series, but 'odd' has one"),
    "free text": (table(60).assign(ward=lambda f: [f"w{i}" for i in range(len(f))]), [], "'ward' must hold numbers or"),
    "target is id": (table(), ["--target", "patient"], "must be different columns, but are patient, when, patient"),
    "forecast of a target": (table(), ["--task", "forecast"], "a forecast has no target, but --target is 'label'"),
    "unknown task": (table(), ["--task", "clustering"], "task must be one of classification, regression, forecast"),
    "unknown layer": (table(), ["--model", "lrcx"], "--model must be one of ltc, stc"),
    "regression of text": (table(), ["--task", "regression"], "column 'label' holds 'well' in row 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_table_is_one_sentence_and_nothing_is_written(case: str, tmp_path: Path) -> None:
    frame, flags, message = BAD[case]
    frame.to_csv(tmp_path / "readings.csv", index=False)
    usual = ["--id", "patient", "--time", "when", "--target", "label"]
    with pytest.raises(ValueError, match=message) as caught:
        run(fit, tmp_path / "readings.csv", *usual, *flags, "--out", tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["readings.csv"]


def test_a_name_that_occurs_twice_in_the_header_is_refused(tmp_path: Path) -> None:
    (tmp_path / "readings.csv").write_text("patient,rate,rate\na,1,2\n")
    with pytest.raises(ValueError, match="must have different column names, but 'rate' occurs twice"):
        read_file(tmp_path / "readings.csv")


@pytest.mark.parametrize(("separator", "decimal"), [(";", ","), (";", "."), ("\t", "."), (",", ".")])
def test_the_header_and_the_first_rows_tell_the_separator(separator: str, decimal: str, tmp_path: Path) -> None:
    frame = table(3)
    frame.to_csv(tmp_path / "readings.csv", index=False, sep=separator, decimal=decimal)
    pd.testing.assert_frame_equal(read_file(tmp_path / "readings.csv"), frame)


def test_columns_without_a_name_or_a_value_are_no_channels(tmp_path: Path) -> None:
    table().assign(spare=np.nan).to_csv(tmp_path / "readings.csv")  # with the number of the row, which has no name
    frame = read_file(tmp_path / "readings.csv")
    schema = understand(frame, id="patient", time="when", target="label")
    assert schema.left_out == {"Unnamed: 0": "no name", "spare": "no values"}
    assert schema.numeric == ["rate", "pressure", "dose"]
    lines = describe(schema, encode(frame, schema, with_targets=True))
    assert "left out  Unnamed: 0 (no name), spare (no values)" in lines


def test_sorting_reads_the_same_series_and_keeps_the_rows_of_the_file(tmp_path: Path) -> None:
    frame = table(3)
    mixed = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    schema = understand(frame, id="patient", time="when", target="dose")
    straight, by_time = (
        encode(one, schema, with_targets=True, sort=sort) for one, sort in ((frame, False), (mixed, True))
    )
    for name, values, rows in zip(by_time.ids, by_time.series.values, by_time.series.rows or [], strict=True):
        np.testing.assert_array_equal(values, straight.series.values[straight.ids.index(name)])
        assert set(mixed["patient"].iloc[rows]) == {name}


@pytest.mark.slow
def test_a_million_rows_on_one_id_are_refused_for_labels(tmp_path: Path) -> None:
    rows = 1_000_000
    frame = pd.DataFrame({"id": "a", "t": np.arange(rows), "x": np.zeros(rows, np.float32), "y": np.arange(rows) % 2})
    frame.to_parquet(tmp_path / "big.parquet")
    with pytest.raises(ValueError, match=r"'id' must name at least 10 series.* but names 1 .*1,000,000 readings"):
        run(fit, tmp_path / "big.parquet", "--id", "id", "--time", "t", "--target", "y", "--out", tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fitted")
    table().drop(columns="dose").to_csv(folder / "readings.csv", index=False)
    usual = ("--id", "patient", "--time", "when", "--target", "label")
    run(fit, folder / "readings.csv", *usual, *QUICK, "--out", folder / "model")
    return folder / "model"


NEW = table(5, seed=1).drop(columns=["dose", "label"])
BAD_NEW: dict[str, tuple[Any, list[str], str]] = {
    "id of training": (
        NEW[NEW["patient"] == "p1-0"].assign(patient="p0-3"),
        [],
        "must name new series, but 'p0-3' in row 1 was in the training",
    ),
    "wrong column": (NEW.drop(columns="rate"), [], "must have the column 'rate'"),
    "new category": (NEW.assign(ward="C"), [], "'ward' must hold one of A, B, as in training, but row 1 is 'C'"),
    "steps": (NEW, ["--steps", "3"], "the model does classification, so --steps would have no effect"),
}


@pytest.mark.parametrize("case", BAD_NEW)
def test_a_bad_new_table_is_one_sentence_and_nothing_is_written(case: str, model: Path, tmp_path: Path) -> None:
    frame, flags, message = BAD_NEW[case]
    frame.to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(ValueError, match=message):
        run(predict, model, tmp_path / "new.csv", *flags, "--out", tmp_path / "predictions.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_a_folder_that_is_no_result_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("precious")
    table().to_csv(tmp_path / "readings.csv", index=False)
    with pytest.raises(ValueError, match="holds other files"):
        run(fit, tmp_path / "readings.csv", "--id", "patient", "--out", tmp_path / "thesis")
    with pytest.raises(ValueError, match="MODEL must be a folder that `lrcnet fit` wrote"):
        run(predict, tmp_path / "thesis", tmp_path / "readings.csv", "--out", tmp_path / "p.csv")
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.txt"]


def test_the_same_seed_gives_the_same_network(model: Path, tmp_path: Path) -> None:
    usual = ("--id", "patient", "--time", "when", "--target", "label")
    run(fit, model.parent / "readings.csv", *usual, *QUICK, "--out", tmp_path / "again")
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()
