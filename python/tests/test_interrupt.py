"""Ctrl-C stops a long call within a tenth of a second and leaves the interpreter as it was."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import odecast

ROWS = 3_000_000


@pytest.fixture(scope="module")
def much():
    t = np.arange(ROWS) * 1e-3
    return odecast.read(t, np.column_stack([np.sin(t), np.cos(t)]))


def slow_function(rng):
    def f(t, u):
        time.sleep(0.001)
        return -u

    return f


CALLS = {
    "adam": lambda d, m, much: odecast.fit(d, trainer="adam"),
    "network": lambda d, m, much: odecast.fit(d, layers=[32, 32]),
    "exact": lambda d, m, much: odecast.fit(d, starts=100_000),
    "long starts": lambda d, m, much: odecast.fit(d, degree=6, starts=1000),
    "many rows": lambda d, m, much: [odecast.fit(much) for _ in range(20)],
    "draws": lambda d, m, much: m.forecast(until=2000, step=1, draws=1_000_000, bands="sd", attempts=1000),
    "long trajectories": lambda d, m, much: m.forecast(until=1e6, step=1000, draws=1000, bands="sd"),
    "one by one": lambda d, m, much: m.forecast(until=1000, step=1, draws=20_000, method="rk4", bands="sd"),
    "function": lambda d, m, much: odecast.forecast(slow_function, [1.0], until=100, step=1, draws=100),
    "simulate": lambda d, m, much: odecast.simulate("Lorenz", until=20_000, step=0.01),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_interrupt(call, train, model, much):
    before = odecast.fit(train).equations()
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.4, send)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call(train, model, much)
    assert time.monotonic() - sent[0] < 0.1
    assert odecast.fit(train).equations() == before
