"""Tables of other libraries, imported only when there is something for them to read."""

from __future__ import annotations

import os


def _needs(reader: str, packages: str, path: str) -> ImportError:
    return ImportError(f"input {path!r}: {reader} needs {packages}: pip install {packages}")


def _parquet(path: str):
    try:
        import pandas

        return pandas.read_parquet(path)
    except ImportError as error:
        raise _needs("Parquet", "pandas pyarrow", path) from error


def _netcdf(path: str):
    try:
        import xarray
    except ImportError as error:
        raise _needs("NetCDF", "xarray h5netcdf", path) from error
    try:
        with xarray.open_dataset(path) as opened:
            return opened.load()
    except ValueError as error:  # no engine for this kind of NetCDF
        if "engine" not in str(error) and "backend" not in str(error):
            raise
        raise _needs("NetCDF", "h5netcdf", path) from error


def _hdf5(path: str):
    """Every one-dimensional array of the file a column, every two-dimensional one as many, the name
    numbered: u1, u2, …"""
    try:
        import h5py
        import pandas
    except ImportError as error:
        raise _needs("HDF5", "h5py pandas", path) from error
    columns = {}

    def take(path, part):
        if not isinstance(part, h5py.Dataset) or part.dtype.kind not in "biufSO":
            return
        name = path.rpartition("/")[2]
        if part.ndim == 1:
            found = {name: part.asstr()[()] if h5py.check_string_dtype(part.dtype) else part[()]}
        else:
            found = {f"{name}{k + 1}": part[:, k] for k in range(part.shape[1])
                     } if part.ndim == 2 else {}
        twice.extend(columns.keys() & found.keys())
        columns.update(found)

    twice = []
    with h5py.File(path) as file:
        file.visititems(take)
    rows = {name: len(column) for name, column in columns.items()}
    if twice or len(set(rows.values())) != 1:
        found = (f"{twice[0]} in several groups" if twice else
                 ", ".join(f"{name} of {count} rows" for name, count in rows.items())
                 or "no arrays of numbers")
        raise ValueError(f"input {path!r}: found {found}, expected arrays of one length, each with "
                         "a name of its own. Read them with h5py and give arrays: "
                         "odecast.read(t, u).")
    return pandas.DataFrame(columns)


_READERS = {".parquet": _parquet, ".pq": _parquet, ".nc": _netcdf, ".nc4": _netcdf,
            ".cdf": _netcdf, ".h5": _hdf5, ".hdf5": _hdf5}


def reader_of(path: str):
    """What reads files of that name instead of the library; None for those that it reads."""
    return _READERS.get(os.path.splitext(path)[1].lower())


def read_table(path: str):
    """The table of such a file."""
    if not os.path.exists(path):
        raise OSError(f"input {path!r}: found no such file, expected a file to read. Check the "
                      "name.")
    return reader_of(path)(path)


def as_frame(table):
    """A pandas DataFrame of one, or of an xarray Dataset or DataArray: of the latter the dimension
    ``variable``, or else the last of two, has the variables. A dimension beside the time numbers
    the trajectories; rows in which nothing was observed are left out."""
    if hasattr(table, "columns"):
        return table
    if not hasattr(table, "data_vars"):
        names = "variable" if "variable" in table.dims else table.dims[-1]
        table = (table.to_dataset(dim=names) if table.ndim > 1 else
                 table.to_dataset(name=str(table.name or "x1")))
    dims = list(table.dims)
    time = next((d for d in dims if d in ("t", "time", "T", "Time")), dims[-1])
    others = [d for d in dims if d != time]
    if len(others) > 1:
        raise ValueError(f"{type(table).__name__}: found the dimensions {dims}, expected the time "
                         "and at most one of trajectories. Select or stack the others.")
    if not others:
        return table.to_dataframe()
    frame = table.to_dataframe(dim_order=[*others, time]).dropna(how="all").reset_index()
    return frame.rename(columns={others[0]: "trajectory"})
