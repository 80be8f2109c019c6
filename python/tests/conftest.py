import os
import pathlib
import subprocess

import numpy as np
import pytest

import odecast

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def program():
    """The command line, the oracle of most tests here."""
    path = pathlib.Path(os.environ.get("ODECAST_PROGRAM", ROOT / "build/release/bin/odecast"))
    if not path.exists() and "ODECAST_PROGRAM" not in os.environ:
        pytest.skip("no command line: build it, or name it in ODECAST_PROGRAM")

    def run(*words, ok=True):
        done = subprocess.run([path, *map(str, words)], capture_output=True, text=True, check=False)
        assert not ok or done.returncode == 0, done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def train():
    return odecast.simulate("SprottB", init=[1, 1, 1], until=10, step=0.002)


@pytest.fixture(scope="session")
def test():
    return odecast.simulate("SprottB", init=[-1, -1, -1], until=10, step=0.02)


@pytest.fixture(scope="session")
def model(train):
    return odecast.fit(train, dropout=0.25)


@pytest.fixture
def spiral():
    """An exact solution: du/dt = A u."""
    t = np.linspace(0, 8, 801)
    u = np.exp(-0.1 * t)[:, None] * np.column_stack([np.cos(t), -np.sin(t)])
    return t, u, np.array([[-0.1, 1.0], [-1.0, -0.1]])
