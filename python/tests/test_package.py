"""What a wheel ships beside the package itself."""

import importlib.metadata
import pathlib
import shutil
import subprocess

import pytest

import odecast


def test_the_package_has_its_notices_and_guards():
    try:
        files = importlib.metadata.files("odecast")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("not installed from a wheel")
    root = pathlib.Path(__file__).parents[2]
    for name in ("LICENSE", "THIRD_PARTY.md"):
        shipped = [f for f in files if f.name == name and ".dist-info" in str(f)]
        assert len(shipped) == 1
        assert shipped[0].locate().read_bytes() == (root / name).read_bytes()
    if shutil.which("readelf"):
        subprocess.run([root / "tests/layers/check_hardening", odecast._core.__file__, "so"],
                       check=True)
