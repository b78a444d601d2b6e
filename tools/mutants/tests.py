"""Runs the core tests with one mutant switched on.

A mutant is killed if a test fails that passes without it, or if a test program dies, hangs or takes
many times the processor time that it takes without it. Tests are deterministic: random ones get a
fixed seed, and none may depend on time.
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import threading

# A line is a test program and its arguments, the quickest first. What survives the quick ones is
# run against the slow ones.
LOG = "log --skip twice_over --skip every_ --skip beside_a_writer"
OFFLINE = "offline --skip crash::a_crash_at --skip cut::a_crash_at"
CRASH = "crash names:: segments:: transfers::a_recovery pages:: order:: matrix:: recovery::"
# What is about a file, before the rest of its layer.
FIRST = {
    "src/log/": ["log salvage:: report:: frame:: chain::"],
    "src/snapshot/": ["lib snapshot", "store_sim snapshot::"],
    "src/engine/directory": ["lib directory", "store_sim directory::"],
    "src/engine/queue": ["lib queue"],
    "src/engine/recovery": ["store_sim open::"],
    "src/engine/repair": [OFFLINE],
    "src/engine/residency": ["store_sim residency::"],
    "src/engine/sequencer": ["store_sim limits:: checkpoint:: open::"],
}
QUICK = {
    "model": ["model_rules", "model_apply", "lib", "store_sim", "model_transactions"],
    "log": ["lib", "store_sim", LOG, OFFLINE],
    "engine": ["lib", "codec_lengths", "storage_format", "store_sim", "store_poison", OFFLINE],
}
SLOW = {
    "model": ["model_oracle", "txn_random", OFFLINE, CRASH],
    "log": [
        "log every_",
        CRASH,
        "crash faults:: full::",
        "offline a_crash_at",
        "log beside_a_writer",
        "log twice_over",
    ],
    "engine": [
        LOG,
        "model_transactions",
        CRASH,
        "crash faults:: full::",
        "offline a_crash_at",
        "crash boundaries:: clock::",
    ],
}
LINES = sorted({line for suite in (FIRST, QUICK, SLOW) for of in suite.values() for line in of})
NAMES = sorted({line.split()[0] for line in LINES})
ENVIRONMENT = {
    "SHARESTATE_CRASH_STATES": "100",
    "SHARESTATE_LOST_PAGES": "100",
    "SHARESTATE_REORDERED_WRITES": "100",
    "SHARESTATE_SHORT_READS": "20",
    "SHARESTATE_RANDOM_SEQUENCES": "200",
    "PROPTEST_RNG_SEED": "1",
    "PROPTEST_MAX_SHRINK_ITERS": "0",
    "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",
    "RUST_BACKTRACE": "0",
}
MEMORY_BYTES = 4 << 30
# No test waits that long without doing anything.
IDLE_SECONDS = 8
LOOKS = 4
# More than a line takes without a mutant, by far.
CPU_SECONDS_MIN = 5
CPU_FACTOR = 20
FAILED = re.compile(rb"^test (.*) \.\.\. FAILED$")


def activity(pid):
    """State and processor time of each thread of a process that is not waited for yet."""
    threads = {}
    for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # the thread has ended meanwhile
            fields = stat.read_text().rsplit(")", 1)[1].split()
            threads[stat.parent.name] = fields[0], int(fields[11]) + int(fields[12])
    return threads


def quick(mutant):
    """The quick lines for a mutant."""
    first = (lines for path, lines in FIRST.items() if mutant["file"].startswith(path))
    return [*next(first, []), *QUICK[mutant["layer"]]]


def slow(mutant):
    """The slow ones."""
    return SLOW[mutant["layer"]]


class Run:
    """One run of a test program."""

    def __init__(self, tree, command, mutant, cpu_limit):
        limits = ["prlimit", f"--cpu={cpu_limit}", f"--as={MEMORY_BYTES}", "--core=0"]
        self.hung = False
        self.over = threading.Event()
        self.process = subprocess.Popen(
            [*limits, *command],
            cwd=tree,
            env={**os.environ, **ENVIRONMENT, "MUTANT": str(mutant)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def kill(self):
        # Not Popen.kill, which may wait for the process: its processor time would be lost. As long
        # as nobody waits, the id is its own.
        os.kill(self.process.pid, signal.SIGKILL)

    def watch(self):
        """Ends the program when all its threads wait and none ever goes on. One that waits for a
        processor of a busy machine is not taken for such a one."""
        before, idle = None, 0
        while not self.over.wait(IDLE_SECONDS / LOOKS):
            now = activity(self.process.pid)
            waits = all(state == "S" for state, _ in now.values())
            idle = idle + 1 if waits and now == before else 0
            before = now
            if idle == LOOKS:
                self.hung = True
                self.kill()
                return

    def failure(self):
        """The first test that fails, or how the program ended; nothing if all passed."""
        watchdog = threading.Thread(target=self.watch)
        watchdog.start()
        failed, summary = None, False
        for line in self.process.stdout:
            summary |= line.startswith(b"test result: ok. ") and b" 0 passed" not in line
            if match := FAILED.match(line):
                failed = match[1].decode()
                self.kill()
                break
        # Only after the watchdog has let go of the process id.
        self.over.set()
        watchdog.join()
        self.process.stdout.close()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu = usage.ru_utime + usage.ru_stime
        if failed:
            return failed
        if self.hung:
            return "hung"
        if self.process.returncode or not summary:
            return f"ended {self.process.returncode}"
        return None


class Programs:
    """The test programs, and how much time each line takes without a mutant."""

    def __init__(self, tree, executables):
        self.tree = tree
        self.executables = executables
        self.limits = {}

    def run(self, line, mutant, cpu_limit):
        name, *arguments = line.split()
        return Run(self.tree, [self.executables[name], *arguments], mutant, cpu_limit)

    def measure(self, lines):
        """Runs without a mutant; what fails, or nothing."""
        for line in lines:
            run = self.run(line, 0, 3600)
            if failed := run.failure():
                return f"{line}: {failed}"
            self.limits[line] = int(max(CPU_SECONDS_MIN, CPU_FACTOR * run.cpu))
        return None

    def killer(self, lines, mutant):
        """What kills this mutant, or nothing."""
        for line in lines:
            if failed := self.run(line, mutant, self.limits[line]).failure():
                return f"{line.split()[0]}: {failed}"
        return None
