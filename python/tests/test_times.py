"""Dates: the same numbers from every type that has them, and dates again in what is made."""

import datetime
import pickle

import numpy as np
import pytest

import odecast

pd = pytest.importorskip("pandas")

ROWS = 120
ORIGIN = np.datetime64("2024-02-28T22:00:00", "ns")
STAMPS = ORIGIN + np.arange(ROWS) * np.timedelta64(10, "m").astype("timedelta64[ns]")


def states():
    rng = np.random.default_rng(1)
    s = 0.3 * np.arange(ROWS)
    u = np.exp(-0.02 * s)[:, None] * np.column_stack([np.cos(s), np.sin(s)])
    return u + 0.01 * rng.standard_normal(u.shape)


U = states()


def sources():
    """The same observations in every way."""
    frame = pd.DataFrame(U, columns=["x", "v"])
    for unit in ("s", "ms", "us", "ns", "m"):
        stamps = STAMPS.astype(f"datetime64[{unit}]")
        yield f"array {unit}", (stamps, U)
        if unit != "m":
            yield f"index {unit}", frame.set_index(pd.DatetimeIndex(stamps))
            yield f"column {unit}", frame.assign(when=stamps)
    moments = [datetime.datetime.fromisoformat(str(t)[:19]) for t in STAMPS]
    yield "datetimes", (moments, U)
    yield "column of datetimes", frame.assign(when=pd.Series(moments, dtype=object))
    yield "column of text", frame.assign(when=[str(t) for t in moments])
    yield "series", (pd.Series(STAMPS), U)
    yield "stamps", (list(pd.DatetimeIndex(STAMPS)), U)


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "log.csv"
    lines = [f"{str(t)[:19]},{x!r},{v!r}" for t, (x, v) in zip(STAMPS, U.tolist())]
    path.write_text("time,x,v\n" + "\n".join(lines) + "\n")
    return path


def read(source):
    return odecast.read(*source) if isinstance(source, tuple) else odecast.read(source)


def test_every_type_gives_the_numbers_of_the_csv(csv):
    expected = odecast.read(csv)
    assert expected[0].times.dtype.kind == "M"
    assert (expected[0].times == STAMPS).all()
    for name, source in sources():
        data = read(source)
        assert data._core.calendar.unit == "min", name
        np.testing.assert_array_equal(data._core.times(0), 10.0 * np.arange(ROWS), err_msg=name)
        np.testing.assert_array_equal(data[0].times, STAMPS, err_msg=name)
        np.testing.assert_array_equal(data[0].states, U, err_msg=name)


def test_the_same_equations_from_every_type(csv):
    expected = odecast.fit(csv, degree=1).equations("json")
    numbers = odecast.fit((10.0 * np.arange(ROWS), U), degree=1, variables=["x", "v"])
    assert numbers.equations("json") == expected
    for name, source in sources():
        data = odecast.read(*source, variables=["x", "v"]) if isinstance(source, tuple) else source
        assert odecast.fit(data, degree=1).equations("json") == expected, name


def test_a_unit_is_asked_for():
    data = odecast.read(STAMPS, U, time_unit="h")
    np.testing.assert_allclose(data._core.times(0), np.arange(ROWS) / 6, rtol=1e-15)


def test_forecasts_speak_dates(csv, tmp_path):
    train, test = odecast.read(csv).split(holdout=0.2)
    model = odecast.fit(train, degree=1)
    fc = model.forecast(at=test, draws=50)
    assert fc.times.dtype.kind == "M"
    np.testing.assert_array_equal(fc.times[1:], test[0].times)
    frame = fc.to_dataframe()
    assert isinstance(frame.index, pd.DatetimeIndex) and frame.index.name == "time"
    assert (frame.index == fc.times).all()
    np.testing.assert_allclose(frame["x_mean"], fc.mean[:, 0])
    # Data of their own origin, dates and arrays of dates say the same.
    lines = csv.read_text().splitlines()
    late = tmp_path / "late.csv"
    late.write_text("\n".join([lines[0], *lines[1 + train.rows:]]) + "\n")
    for at in (late, odecast.read(late), test[0].times, pd.DatetimeIndex(test[0].times)):
        np.testing.assert_array_equal(model.forecast(at=at, draws=50).mean, fc.mean)
    end = pd.Timestamp(test[0].times[-1])
    for until in (end, end.to_pydatetime(), end.to_datetime64(), str(end)):
        np.testing.assert_array_equal(model.forecast(until=until, draws=50).times, fc.times)
    assert odecast.score(fc, odecast.read(late)) == odecast.score(fc, test)
    fc.save(tmp_path / "f.csv")
    again = odecast.read_forecast(tmp_path / "f.csv")
    np.testing.assert_array_equal(again.times, fc.times)
    for copy in (pickle.loads(pickle.dumps(fc)), pickle.loads(pickle.dumps(again))):
        np.testing.assert_array_equal(copy.times, fc.times)
    assert "2024-02-29 13:50 … 2024-02-29 17:50" in repr(fc)
    assert "Feb 29" in fc.svg(test)
    assert fc.to_xarray().time.dtype.kind == "M"


def test_zones():
    berlin = pd.DatetimeIndex(STAMPS).tz_localize("UTC").tz_convert("Europe/Berlin")
    data = odecast.read(pd.DataFrame(U, columns=["x", "v"]).set_index(berlin))
    np.testing.assert_array_equal(data[0].times, STAMPS)
    frame = odecast.fit(data, degree=1).forecast(until=berlin[-1] + pd.Timedelta("1h"),
                                                 draws=20).to_dataframe()
    assert frame.index[0] == berlin[-1]
    assert frame.index.tz.utcoffset(None) == datetime.timedelta(hours=1)


def test_dates_are_no_numbers():
    with pytest.raises(TypeError, match="found dates"):
        odecast.read(np.arange(ROWS), np.column_stack([STAMPS, STAMPS]))
    broken = STAMPS.copy()
    broken[3] = np.datetime64("NaT")
    with pytest.raises(ValueError, match="NaT"):
        odecast.read(broken, U)
    model = odecast.fit((np.arange(ROWS), U), degree=1)
    with pytest.raises(ValueError, match="found dates"):
        model.forecast(at=STAMPS)
