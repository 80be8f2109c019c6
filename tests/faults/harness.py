"""What the parts of ./test faults share: small inputs, runs of the program, and what every run must
leave behind."""
import gzip
import mmap
import os
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

KINDS = ['open', 'read', 'write', 'fsync', 'syncdir', 'rename', 'close', 'mkdir', 'unlink', 'lock',
         'thread', 'malloc']
OLD = b'an older file, whose bytes stay until the new one is whole\n'
HERE = os.path.dirname(os.path.abspath(__file__))


class Form:
    """A command line, what it reads on standard input, what it writes, and whether that is a folder
    of work."""

    def __init__(self, name, words, outputs=(), stdin=None, folder=None, template=None, cost=1.0):
        self.name, self.words, self.outputs, self.stdin = name, words.split(), list(outputs), stdin
        self.verb = self.words[0]
        self.folder = folder      # a folder of work: may hold units after a failure, and goes on
        # What stands in the work directory before: name of a folder in the base
        self.template = template
        self.cost = cost          # thinner samples where one run takes long


FIT = 'fit ../in/small.csv --threads 2 --posterior '
SMALL_TUNE = ('--posterior regression --degree 1,2 --blocks 2 --starts 4 --leads 1 --draws 2 '
              '--threads 2 -o study')
SMALL_COMPARE = ('--systems {} --noise 0 --rows 50 --starts 20 --held-out 20 --horizon 0.1 --leads '
                 '1 --draws 2 '
                 '--threads 2 -o study')
SMALL_REPRODUCE = '--adam-seeds 2 --batches 1 --threads 2 -o study'
POSTERIORS = {'trajectory': 'trajectory', 'regression': 'regression',
              'bootstrap': 'bootstrap --replicates 3',
              'dropout': 'dropout --starts 2 --hidden 6',
              'ensemble': 'ensemble --members 2 --trainer adam --batches 1'}

FORMS = [
    Form('simulate', 'simulate SprottB --until 1 --step 0.1 --noise 0.01 -o out.csv', ['out.csv']),
    Form('simulate-npz', 'simulate SprottB --until 1 --step 0.1 -o out.npz', ['out.npz']),
    Form('simulate-stdout', 'simulate SprottB --until 1 --step 0.1'),
    Form('inspect', 'inspect ../in/small.csv'),
    Form('inspect-gz', 'inspect ../in/small.csv.gz --json'),
    Form('inspect-npz', 'inspect ../in/small.npz'),
    Form('inspect-stdin', 'inspect -', stdin='small.csv'),
    *[Form('fit-' + name, FIT + words + ' -o model.json', ['model.json'],
           cost=3 if name == 'trajectory' else 1)
      for name, words in POSTERIORS.items()],
    Form('fit-report', FIT + 'regression --report page.html -o model.json',
         ['model.json', 'page.html']),
    Form('fit-calibrate',
         'fit ../in/long.csv --posterior regression --calibrate --holdout 0.4 --threads 2 -o '
         'model.json',
         ['model.json'], cost=10),
    Form('fit-gz', 'fit ../in/small.csv.gz --posterior regression --threads 2 --json -o model.json',
         ['model.json']),
    Form('fit-npz', 'fit ../in/small.npz --posterior regression --threads 2 -o model.json',
         ['model.json']),
    Form('fit-stdin', 'fit - --posterior regression --threads 2 -o model.json', ['model.json'],
         stdin='small.csv'),
    Form('fit-missing', 'fit ../in/none.csv -o model.json', ['model.json']),
    Form('fit-bad', 'fit ../in/bad.csv -o model.json', ['model.json']),
    *[Form('forecast-' + name,
           f'forecast ../in/{name}.json --until 3.5 --draws 6 --threads 2 -o out.csv', ['out.csv'])
      for name in POSTERIORS],
    Form('forecast-report',
         'forecast ../in/regression.json --at ../in/later.csv --truth ../in/later.csv --draws 6 '
         '--threads 2 '
         '--report page.html -o out.csv', ['out.csv', 'page.html'], cost=3),
    Form('forecast-mean', 'forecast ../in/regression.json --until 3.5 --field mean -o out.csv',
         ['out.csv']),
    Form('filter', 'filter ../in/regression.json ../in/later.csv --noise 0.1 --members 20 --truth '
         '../in/later.csv --threads 2 -o out.csv', ['out.csv']),
    Form('filter-learn', 'filter ../in/trajectory.json ../in/later.csv --noise 0.1 --learn --lag 2 '
         '--model after.json --coefficients c.csv --report page.html -o out.csv',
         ['out.csv', 'after.json', 'c.csv', 'page.html'], cost=3),
    Form('filter-stream', 'filter ../in/dropout.json - --noise 0.1 --members 20',
         stdin='later.csv'),
    Form('score', 'score ../in/forecast.csv ../in/later.csv'),
    Form('score-json', 'score ../in/forecast.csv ../in/later.csv --json'),
    Form('equations', 'equations ../in/trajectory.json'),
    Form('equations-latex', 'equations ../in/dropout.json --format latex'),
    Form('equations-c', 'equations ../in/bootstrap.json --format c'),
    Form('equations-stdin', 'equations - --format json', stdin='regression.json'),
    Form('predict', 'predict ../in/dropout.json --at 1,1,1'),
    Form('predict-json', 'predict ../in/ensemble.json --at 1,1,1 --draws 5 --json'),
    Form('plot', 'plot ../in/forecast.csv --truth ../in/later.csv -o out.svg', ['out.svg']),
    Form('split', 'split ../in/small.csv --train early.csv --test late.csv',
         ['early.csv', 'late.csv']),
    Form('systems', 'systems'),
    Form('systems-one', 'systems SprottB --json'),
    Form('lyapunov', 'lyapunov SprottB --until 20 --transient 1'),
    Form('lyapunov-model', 'lyapunov ../in/regression.json --until 60 --transient 1'),
    Form('attractor',
         'attractor ../in/regression.json ../in/small.csv --draws 2 --pieces 2 --threads 2'),
    Form('evaluate',
         'evaluate ../in/regression.json ../in/small.csv --starts 20 --draws 6 --leads 2 --horizon '
         '0.2 --threads 2'),
    Form('calibrate',
         'calibrate ../in/regression.json ../in/small.csv --starts 20 --draws 6 --leads 2 '
         '--horizon 0.2 --threads 2 '
         '-o model.json', ['model.json']),
    Form('calibrate-itself',
         'calibrate model.json ../in/small.csv --starts 20 --draws 6 --leads 2 --horizon 0.2 '
         '--threads 2',
         ['model.json'], template='own-model'),
    Form('tune', 'tune ../in/small.csv ' + SMALL_TUNE, folder='study', cost=4),
    Form('tune-again', 'tune ../in/small.csv ' + SMALL_TUNE, folder='study', template='tuned',
         cost=2),
    Form('compare', 'compare ' + SMALL_COMPARE.format('Lorenz'), folder='study', cost=15),
    Form('compare-again', 'compare ' + SMALL_COMPARE.format('Lorenz'), folder='study',
         template='compared', cost=2),
    Form('reproduce', 'reproduce ' + SMALL_REPRODUCE, folder='study', cost=1000),
    Form('reproduce-again', 'reproduce ' + SMALL_REPRODUCE, folder='study', template='reproduced',
         cost=50),
]

TEMPORARY = re.compile(r'\.tmp$|\.odecast-probe|\.part$|^\.')


class Result:
    def __init__(self, code, out, err, seconds, hung):
        self.code, self.out, self.err, self.seconds, self.hung = code, out, err, seconds, hung


def masked(data):
    """The bytes without what a clock measured."""
    data = re.sub(rb'"seconds": ?[-+.0-9e]+', b'"seconds": *', data)
    data = re.sub(rb'\bin [.0-9e+-]+ s\b', b'in * s', data)
    return data


def wait(process, limit):
    """Waits for the end of a process; whether it came within the limit, after which it is
    killed."""
    with_end = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(with_end, select.POLLIN)
        ended = bool(poll.poll(max(0.0, limit) * 1000))
        if not ended:
            process.kill()
        process.wait()
        return ended
    finally:
        os.close(with_end)


def clean_environment():
    ours = ('FAULT_', 'ODECAST_', 'LD_')
    return {k: v for k, v in os.environ.items() if not k.startswith(ours)} | {'LC_ALL': 'C.UTF-8'}


class Place:
    """A directory to run in, beside one with inputs, and files for what a run prints."""

    def __init__(self, program, base, name):
        self.program, self.base, self.work = program, base, os.path.join(base, name)
        os.makedirs(self.work, exist_ok=True)
        self.report_path = os.path.join(base, name + '.report')
        with open(self.report_path, 'wb') as file:
            file.write(bytes(128))
        self.report_file = open(self.report_path, 'r+b')
        self.report = mmap.mmap(self.report_file.fileno(), 128)
        self.out = open(os.path.join(base, name + '.out'), 'w+b')
        self.err = open(os.path.join(base, name + '.err'), 'w+b')
        self.environment = clean_environment()

    def reset(self, form=None):
        """Empties the directory and puts what stands there before the form runs."""
        for name in os.listdir(self.work):
            path = os.path.join(self.work, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        if form is None:
            return
        if form.template:
            shutil.copytree(os.path.join(self.base, form.template), self.work, dirs_exist_ok=True,
                            symlinks=True)
        for name in form.outputs:
            path = os.path.join(self.work, name)
            if not os.path.exists(path):
                with open(path, 'wb') as file:
                    file.write(OLD)

    def files(self):
        """Every regular file below the directory with its bytes."""
        found = {}
        for folder, _, names in os.walk(self.work):
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.isfile(path):  # a FIFO
                    continue
                with open(path, 'rb') as file:
                    found[os.path.relpath(path, self.work)] = file.read()
        return found

    def run(self, form, fault=None, shim=None, before=None, shell=None, limit=60.0, words=None):
        environment = dict(self.environment)
        if fault:
            kind, error, ever, n = fault
            environment.update(LD_PRELOAD=shim, FAULT_KIND=kind, FAULT_ERRNO=str(error),
                               FAULT_N=str(n),
                               FAULT_REPORT=self.report_path)
            if ever:
                environment['FAULT_EVER'] = '1'
            self.report[:] = bytes(128)
        command = [self.program] + (words if words is not None else form.words)
        if shell:
            command = ['sh', '-c', 'exec "$0" "$@" ' + shell] + command
        for file in (self.out, self.err):
            file.seek(0)
            file.truncate()
        source = open(os.path.join(self.base, 'in', form.stdin),
                      'rb') if form and form.stdin else subprocess.DEVNULL
        begin = time.monotonic()
        try:
            process = subprocess.Popen(command, cwd=self.work, env=environment, stdin=source,
                                       stdout=self.out,
                                       stderr=self.err, preexec_fn=before, close_fds=True)
        finally:
            if source != subprocess.DEVNULL:
                source.close()
        ended = wait(process, limit)
        seconds = time.monotonic() - begin
        for file in (self.out, self.err):
            file.seek(0)
        return Result(process.returncode, self.out.read(), self.err.read(), seconds, not ended)

    def counts(self):
        """Calls of each kind, and how many failed."""
        numbers = struct.unpack('16Q', self.report[:])
        return dict(zip(KINDS, numbers)), numbers[15]


def build_shim(to):
    path = os.path.join(to, 'shim.so')
    subprocess.run(['cc', '-O2', '-shared', '-fPIC', '-o', path, os.path.join(HERE, 'shim.c'),
                    '-ldl'], check=True)
    return path


def make_inputs(program, base):
    """Small data, a model of each posterior, a forecast: the folder `in`."""
    place = os.path.join(base, 'in')
    os.makedirs(place)

    def odecast(words):
        done = subprocess.run([program] + words.split(), cwd=place, env=clean_environment(),
                              capture_output=True)
        if done.returncode != 0:
            sys.exit(f'faults: odecast {words}: exit {done.returncode}\n{done.stderr.decode()}')

    odecast('simulate SprottB --init 1,1,1 --until 3 --step 0.05 -o small.csv')
    odecast('simulate SprottB --init 1,1,1 --until 3 --step 0.05 -o small.npz')
    odecast('simulate SprottB --init 1,1,1 --until 30 --step 0.05 --noise 0.02 -o long.csv')
    odecast('simulate SprottB --init 1,1,1 --until 3.5 --step 0.05 -o whole.csv')
    with open(os.path.join(place, 'small.csv'), 'rb') as file, gzip.GzipFile(
            os.path.join(place, 'small.csv.gz'), 'wb', mtime=0) as to:
        to.write(file.read())
    with open(os.path.join(place, 'whole.csv')) as file, open(os.path.join(place, 'later.csv'),
                                                              'w') as to:
        lines = file.readlines()
        head = [line for line in lines if line[0] in '#t']
        to.writelines(['t,x,y,z\n'] + [line for line in lines if line not in head
                                       and float(line.split(',')[0]) > 3.001])
    with open(os.path.join(place, 'bad.csv'), 'w') as file:
        file.write('t,x\n0,1\n1,what\n')
    for name, words in POSTERIORS.items():
        odecast(f'fit small.csv --posterior {words} -o {name}.json')
    odecast('forecast regression.json --at later.csv --draws 6 -o forecast.csv')
    os.makedirs(os.path.join(base, 'own-model'))
    shutil.copy(os.path.join(place, 'regression.json'), os.path.join(base, 'own-model',
                                                                     'model.json'))


class Base:
    """A temporary directory with inputs, gone at the end."""

    def __init__(self, program):
        self.path = tempfile.mkdtemp(prefix='odecast-faults-')
        os.chmod(self.path, 0o755)
        make_inputs(program, self.path)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def seed_limits():
    """No core files; and SIGINT as programs find it, not ignored as in a background job."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.default_int_handler)


def signal_name(code):
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f'signal {-code}'


def program_of(path):
    path = os.path.abspath(path)
    if not os.access(path, os.X_OK):
        sys.exit(f'faults: {path} is no program')
    return path
