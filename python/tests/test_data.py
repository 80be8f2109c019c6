"""Arrays are used where they are; whatever the form of the data, the same data."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import odecast


def same(a, b):
    assert a.variables == b.variables and a.ids == b.ids and a.inputs == b.inputs
    for x, y in zip(a, b):
        for left, right in zip(x[1:], y[1:]):
            np.testing.assert_array_equal(left, right)


def test_no_copy_of_contiguous_float64(spiral):
    t, u, _ = spiral
    assert odecast.read(t, u)._core.address(0) == u.ctypes.data
    u.flags.writeable = False
    assert odecast.read(t, u)._core.address(0) == u.ctypes.data
    table = np.column_stack([t, u])
    assert odecast.read(table)._core.address(0) == table.ctypes.data + 8
    assert odecast.read(t, u.astype(np.float32))._core.address(0) != u.ctypes.data


def test_the_array_lives_as_long_as_the_data(spiral):
    t, u, _ = spiral
    data = odecast.read(t, u.copy())
    assert odecast.fit(data, dropout=0).equations() == odecast.fit((t, u), dropout=0).equations()


@pytest.mark.parametrize("change", [
    np.asfortranarray, lambda u: u[::1, ::-1][:, ::-1], lambda u: u.astype(">f8"),
    lambda u: u.tolist(),
    lambda u: np.ma.masked_array(u), lambda u: np.repeat(u, 2, axis=0)[::2]])
def test_other_layouts_are_the_same_data(spiral, change):
    t, u, _ = spiral
    same(odecast.read(t, change(u)), odecast.read(t, u))


def test_the_forms_of_one_trajectory(spiral):
    t, u, _ = spiral
    same(odecast.read(np.column_stack([t, u])), odecast.read(t, u))
    even = np.arange(len(u)) * 0.25
    same(odecast.read(0.25, u), odecast.read(even, u))
    same(odecast.read(u, sample_step=0.25), odecast.read(even, u))
    same(odecast.read(t, u[:, 0]), odecast.read(t, u[:, :1]))


def test_several_trajectories(spiral):
    t, u, _ = spiral
    data = odecast.read([t[:300], t[300:]], [u[:300], u[300:]])
    assert data.ids == ["1", "2"] and data.rows == len(t) and len(data) == 2
    same(odecast.read(t[:400], [u[:400], u[400:800]]),
         odecast.read([t[:400]] * 2, [u[:400], u[400:800]]))
    same(odecast.read(np.stack([np.column_stack([t, u])] * 2)), odecast.read(t, [u, u]))


def test_frames(spiral, tmp_path):
    pandas = pytest.importorskip("pandas")
    t, u, _ = spiral
    frame = pandas.DataFrame({"time": t, "x": u[:, 0], "v": u[:, 1]})
    data = odecast.read(t, u, variables=["x", "v"])
    same(odecast.read(frame), data)
    same(odecast.read(frame.set_index("time")), data)
    same(odecast.read(frame.sample(frac=1, random_state=1), sort=True), data)
    several = pandas.concat([frame.assign(trajectory="early"), frame.assign(trajectory="late")])
    assert odecast.read(several).ids == ["early", "late"]
    several.to_csv(tmp_path / "several.csv", index=False)
    same(odecast.read(several), odecast.read(tmp_path / "several.csv"))
    same(odecast.read(odecast.read(several).to_dataframe()), odecast.read(several))


def test_an_index_of_times_is_kept(spiral):
    """Whatever its name, or without one; and it comes back with the data and with forecasts."""
    pandas = pytest.importorskip("pandas")
    t, u, _ = spiral
    for name in ("time", "Year", "seconds since noon", None):
        frame = pandas.DataFrame(u, columns=["x", "v"], index=pandas.Index(t + 1900, name=name))
        data = odecast.read(frame)
        assert data.variables == ["x", "v"]
        np.testing.assert_array_equal(data[0].times, t + 1900)
        pandas.testing.assert_frame_equal(data.to_dataframe(), frame, check_exact=True)
        early, _ = pickle.loads(pickle.dumps(data)).split(holdout=0.5)
        made = odecast.fit(early, degree=1, dropout=0).forecast(at=frame.index.to_numpy()[500:],
                                                                draws=2)
        for fc in (made, copy.deepcopy(made)):
            table = fc.to_dataframe()
            assert table.index.name == name and table.columns[0] == "x_mean"
            np.testing.assert_array_equal(table.index, fc.times)
    # A column of times comes before an index, which then numbers rows and stays away.
    frame = pandas.DataFrame({"t": t, "x": u[:, 0]}).iloc[100:]
    assert odecast.read(frame).variables == ["x"]
    assert odecast.read(frame).to_dataframe().columns.tolist() == ["t", "x"]


def test_missing_values(spiral):
    t, u, _ = spiral
    u[100, 1] = np.nan
    with pytest.raises(ValueError, match="data, row 101, column x2: found 'nan', a missing value"):
        odecast.read(t, u)
    data = odecast.read(t, u, missing="drop")
    assert data.ids == ["1", "2"]
    same(data, odecast.read([t[:100], t[101:]], [u[:100], u[101:]]))
    np.testing.assert_array_equal(odecast.read(0.1, u, missing="drop")[1].times,
                                  np.arange(101, len(u)) * 0.1)
    masked = np.ma.masked_invalid(u)
    same(odecast.read(t, masked, missing="drop"), data)


@pytest.mark.parametrize("t,u,message", [
    ([0, 1, 1], np.ones(3), "time 1 after 1"),
    ([0, 1], np.ones((3, 2)), "expected 3 times, one per row"),
    ([0, 1, 2], np.array([1, np.inf, 3]), "row 2, column x1: found inf"),
    ([0, 1, 2], np.ones((3, 2, 2)), "shape"),
    ([0, 1, 2], np.ones((3, 0)), "at least one row and one variable"),
    ([0, 1, 2], [["a"], ["b"], ["c"]], "expected numbers"),
    ([0, 1, 2], [np.ones((3, 2)), np.ones((3, 1))], "1 columns after 2"),
])
def test_bad_arrays(t, u, message):
    with pytest.raises(ValueError, match=message):
        odecast.read(t, u)


def test_names(spiral):
    t, u, _ = spiral
    assert odecast.read(t, u).variables == ["x1", "x2"]
    assert odecast.read(t, u, variables=["id", "trajectory"]).variables == ["id", "trajectory"]
    with pytest.raises(ValueError, match="expected 2, one per column"):
        odecast.read(t, u, variables=["x"])
    with pytest.raises(ValueError, match="twice"):
        odecast.read(t, u, variables=["x", "x"])
    with pytest.raises(ValueError, match="read already"):
        odecast.fit(odecast.read(t, u), variables=["x1"])


def test_a_large_array_takes_no_memory():
    """3e6 × 3 rows, 96 MB with their times: the peak of the process, which has fitted before, grows
    by less than a third of that."""
    code = """
import resource, numpy as np, odecast
n = 3_000_000
t = np.empty(n); u = np.empty((n, 3))
for i in range(0, n, 100_000):
    part = slice(i, i + 100_000)
    t[part] = np.arange(i, i + 100_000) * 1e-4
    u[part, 0] = np.sin(t[part]); u[part, 1] = np.cos(t[part]); u[part, 2] = np.sin(2 * t[part])
odecast.fit((t[:100_000], u[:100_000]), dropout=0, threads=1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = odecast.fit((t, u), dropout=0, threads=1)
assert model.summary["rows"] == n - 1
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 30 * 1024


def test_what_a_notebook_shows(train):
    page = train._repr_html_()
    assert "<svg" in page and "<th>x</th>" in page and "5001 rows" in page
    assert "&lt;b&gt;" in odecast.read([0, 1, 2], [1, 2, 4], variables=["<b>"])._repr_html_()
