"""The figures that are promised. Each is the best of several: another program may run beside."""

import subprocess
import sys
import time

import numpy as np


def best(repeat, number, call):
    call()
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        for _ in range(number):
            call()
        times.append((time.perf_counter() - begin) / number)
    return min(times)


def test_import_takes_less_than_a_tenth_of_a_second():
    """Beside NumPy's own import, which takes as long again and is not ours."""
    code = ("import time, numpy; b = time.process_time(); import odecast; "
            "print(time.process_time() - b)")
    seconds = min(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                       check=True).stdout)
                  for _ in range(5))
    assert seconds < 0.1


def test_import_takes_only_numpy_along():
    code = ("import sys, odecast; others = {'pandas', 'sklearn', 'matplotlib', 'xarray', 'tqdm'}; "
            "print(sorted(others & set(sys.modules)))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_predict_of_one_state(model):
    u = np.array([1.0, 2.0, 3.0])
    assert best(10, 2000, lambda: model.predict(u)) < 5e-6
    assert best(10, 2000, lambda: model.predict([1.0, 2.0, 3.0])) < 5e-6


def test_overhead_of_a_forecast(model):
    """Of a forecast that takes C++ a few microseconds, all but those are overhead."""

    def tiny():
        return model.forecast([-1, -1, -1], until=0.02, step=0.02, draws=2, bands="sd", threads=1)

    inside = min(tiny().summary["seconds"] for _ in range(100))
    assert best(10, 100, tiny) - inside < 100e-6
