"""The notebook of the examples runs from its first cell to its last, and shows what it should."""

import pytest

from conftest import ROOT


def test_the_first_hour(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    for needed in ("ipykernel", "pandas", "matplotlib"):
        pytest.importorskip(needed)
    notebook = nbformat.read(ROOT / "examples/python/first_hour.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells)  # results are not kept
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3",
                            resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output.get("data", {}) for cell in notebook.cells if cell.cell_type == "code"
             for output in cell.outputs]
    assert any("<math" in part.get("text/html", "") for part in shown)
    assert any("image/png" in part for part in shown)
    assert (tmp_path / "pendulum.json").exists()
