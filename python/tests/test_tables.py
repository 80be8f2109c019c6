"""Tables of other libraries: the same data as from arrays."""

import sys

import numpy as np
import pytest

import odecast


def same(a, b):
    assert a.variables == b.variables and len(a) == len(b)
    for x, y in zip(a, b):
        np.testing.assert_array_equal(x.times, y.times)
        np.testing.assert_array_equal(x.states, y.states)


@pytest.fixture(scope="module")
def known():
    t = np.linspace(0, 8, 81)
    u = np.column_stack([np.cos(t), -np.sin(t)])
    return t, u, odecast.read(t, u, variables=["x", "v"])


def test_xarray(known):
    xarray = pytest.importorskip("xarray")
    t, u, data = known
    array = xarray.DataArray(u, dims=("time", "variable"),
                             coords={"time": t, "variable": ["x", "v"]})
    same(odecast.read(array), data)
    same(odecast.read(array.T), data)
    same(odecast.read(array.rename(time="seconds")), data)
    same(odecast.read(array.to_dataset("variable")), data)
    same(odecast.read(array.sel(variable="x", drop=True).rename("x")),
         odecast.read(t, u[:, 0], variables=["x"]))
    assert odecast.read(array).to_dataframe().index.name == "time"
    runs = xarray.concat([array, array.isel(time=slice(50))], dim="run", join="outer")
    same(odecast.read(runs), odecast.read([t, t[:50]], [u, u[:50]], variables=["x", "v"]))
    fc = odecast.fit(data, degree=1, dropout=0).forecast(until=10, step=0.5, draws=2)
    mean = fc.to_xarray()["mean"]
    same(odecast.read(mean), odecast.read(fc.times, fc.mean, variables=["x", "v"]))
    with pytest.raises(ValueError, match="at most one of trajectories"):
        odecast.read(runs.expand_dims("lab"))


def test_parquet(known, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    t, u, data = known
    frame = pandas.DataFrame({"t": t, "x": u[:, 0], "v": u[:, 1]})
    frame.to_parquet(tmp_path / "data.parquet")
    frame.set_index("t").to_parquet(tmp_path / "indexed.parquet")
    same(odecast.read(tmp_path / "data.parquet"), data)
    same(odecast.read(str(tmp_path / "indexed.parquet")), data)
    same(odecast.read([tmp_path / "data.parquet", tmp_path / "indexed.parquet"]),
         odecast.read(t, [u, u], variables=["x", "v"]))
    assert odecast.fit(tmp_path / "data.parquet", degree=1, dropout=0).variables == ["x", "v"]
    with pytest.raises(ValueError, match="files of another kind"):
        data.save(tmp_path / "data.csv")
        odecast.read([tmp_path / "data.parquet", tmp_path / "data.csv"])


def test_netcdf(known, tmp_path):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("scipy")
    t, u, data = known
    table = xarray.Dataset({"x": ("time", u[:, 0]), "v": ("time", u[:, 1])}, coords={"time": t})
    table.to_netcdf(tmp_path / "data.nc", engine="scipy")
    same(odecast.read(tmp_path / "data.nc"), data)
    try:
        import h5netcdf  # noqa: F401
    except ImportError:
        h5py = pytest.importorskip("h5py")
        h5py.File(tmp_path / "newer.nc", "w").close()
        with pytest.raises(ImportError, match="pip install h5netcdf"):
            odecast.read(tmp_path / "newer.nc")


def test_hdf5(known, tmp_path):
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("pandas")
    t, u, data = known
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["run/t"], file["run/x"], file["run/v"] = t, u[:, 0], u[:, 1]
    same(odecast.read(tmp_path / "data.h5", variables=["x", "v"]), data)
    with h5py.File(tmp_path / "matrix.hdf5", "w") as file:
        file["time"], file["u"] = t, u
    same(odecast.read(tmp_path / "matrix.hdf5"), odecast.read(t, u, variables=["u1", "u2"]))
    for parts, found in (({"t": t, "x": u[:9, 0]}, "t of 81 rows, x of 9 rows"),
                         ({"t": t, "a/x": t, "b/x": t}, "x in several groups"), ({}, "no arrays")):
        with h5py.File(tmp_path / "bad.h5", "w") as file:
            for name, part in parts.items():
                file[name] = part
        with pytest.raises(ValueError, match=f"found {found}.*expected arrays of one length"):
            odecast.read(tmp_path / "bad.h5")


@pytest.mark.parametrize("name,package", [("a.parquet", "pandas pyarrow"), ("a.nc", "xarray"),
                                          ("a.h5", "h5py")])
def test_what_is_missing_is_named(tmp_path, monkeypatch, name, package):
    """Without the packages that read it, and without the file."""
    with pytest.raises(OSError, match="found no such file"):
        odecast.read(tmp_path / name)
    (tmp_path / name).write_bytes(b"")
    for gone in ("pandas", "xarray", "h5py"):
        monkeypatch.setitem(sys.modules, gone, None)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        odecast.read(tmp_path / name)
