"""Filters give the numbers of the command line, whole and row by row."""

import json

import numpy as np
import pytest

import odecast


@pytest.fixture(scope="module")
def lorenz(tmp_path_factory):
    place = tmp_path_factory.mktemp("lorenz")
    odecast.fit(odecast.simulate("Lorenz", until=10, step=0.02, noise=0.02)).save(
        place / "model.json")
    odecast.simulate("Lorenz", init=[3, 4, 20], until=5, step=0.1, noise=0.02, seed=3).save(
        place / "rows.csv")
    return place


@pytest.mark.parametrize("options", [{}, {"method": "kalman", "members": 50, "lag": 3},
                                     {"learn": True, "ahead": 0.2}])
def test_the_same_bytes_as_the_command_line(program, lorenz, options):
    model = odecast.load(lorenz / "model.json")
    words = [f"--{name}" if value is True else f"--{name}={value}"
             for name, value in options.items()]
    theirs = json.loads(program("filter", lorenz / "model.json", lorenz / "rows.csv", *words,
                                "-o", lorenz / "theirs.csv", "--model", lorenz / "after.json",
                                "--json").stdout)
    ours = model.filter(lorenz / "rows.csv", **options)
    ours.save(lorenz / "ours.csv")
    assert (lorenz / "ours.csv").read_bytes() == (lorenz / "theirs.csv").read_bytes()
    assert {**ours.summary, "seconds": 0} == {**theirs, "seconds": 0}
    assert ours.model.equations() == odecast.load(lorenz / "after.json").equations()
    assert ours.mean.shape == ours.lower.shape == (51, 3)


def test_tables(lorenz):
    pytest.importorskip("pandas")
    filtered = odecast.load(lorenz / "model.json").filter(lorenz / "rows.csv", learn=True)
    assert filtered.to_dataframe().shape[0] == filtered.coefficients().shape[0] == 51
    assert "dy/dt: x_mean" in filtered.coefficients()


def test_row_by_row(lorenz):
    model = odecast.load(lorenz / "model.json")
    rows = odecast.read(lorenz / "rows.csv")[0]
    whole = model.filter(lorenz / "rows.csv")
    filter = odecast.Filter(model)
    assert filter.observed == ["x", "y", "z"]
    for k, (t, u) in enumerate(zip(rows.times, rows.states)):
        if k == 25:  # a service that is stopped and goes on
            filter.save(lorenz / "state.json")
            filter = odecast.Filter.load(lorenz / "state.json", model)
        row = filter.update(t, dict(zip("xyz", u)) if k % 2 else u)
        np.testing.assert_array_equal(row["mean"], whole.mean[k])
        assert row["status"] == whole.status[k]
    forecast = filter.forecast(until=6, step=0.1, draws=100)
    assert forecast.times[0] == 5
    np.testing.assert_allclose(forecast.mean[0], row["mean"], atol=3 * row["sd"].max())
    assert filter.members.shape == (1000, 3)
    assert filter.update(4.0, rows.states[0])["status"] == "late"


def test_what_is_not_observed(lorenz):
    model = odecast.load(lorenz / "model.json")
    filter = odecast.Filter(model, ["x"])
    assert filter.update(0, [3.0])["used"] == 1
    assert filter.update(0.1, [np.nan])["status"] == "unobserved"
    with pytest.raises(ValueError, match="expected names among x"):
        filter.update(0.2, {"y": 1})
    with pytest.raises(ValueError, match="found 2 values, expected 1"):
        filter.update(0.2, [1, 2])
    with pytest.raises(ValueError, match="learn"):
        odecast.Filter(model, drift=1)
    with pytest.warns(odecast.NotTrusted, match="noise="):
        model.filter(lorenz / "rows.csv", noise=0.01)
