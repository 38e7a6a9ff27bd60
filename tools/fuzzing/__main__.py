"""Fuzz all parsers, each in a separate process: ``python -m tools.fuzzing --runs 10000000``.

Faults are stored below VAR_DIR, and copied to tests/data/fuzzing once they are fixed. Exit 1 if anything was found.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.fuzzing.parsers import PARSERS, found

MAX_NBYTES = 40_000
INPUT_SECS = 10
"""Seconds for one input; counting coverage makes a parser about five times slower."""
MEMORY_MB = 1024
_TAG = re.compile(rb"</?[A-Za-z_]\w{1,40}/?>")


def fuzz(name: str, runs: int, secs: int, folder: Path) -> tuple[str, str]:
    """Return the parser's name, and what went wrong; empty: nothing."""
    corpus, seeds = folder / "corpus" / name, folder / "seeds" / name
    faults = folder / "faults" / name
    for place in (corpus, seeds, faults):
        place.mkdir(parents=True, exist_ok=True)
    inputs = [*PARSERS[name].seeds(), *(path.read_bytes() for path in found(name))]
    for number, data in enumerate(inputs):
        (seeds / f"{number}").write_bytes(data)
    options = [
        f"-runs={runs}", f"-max_len={MAX_NBYTES}", f"-timeout={INPUT_SECS}", f"-rss_limit_mb={MEMORY_MB}",
        f"-artifact_prefix={faults}/", "-print_final_stats=1", "-verbosity=0",
    ]  # fmt: skip
    if words := sorted({tag for data in inputs for tag in _TAG.findall(data)}):
        dictionary = folder / f"{name}.dict"
        dictionary.write_bytes(b"".join(b'"%s"\n' % word for word in words))
        options.append(f"-dict={dictionary}")
    if secs:
        options.append(f"-max_total_time={secs}")
    done = subprocess.run(
        [sys.executable, "-m", "tools.fuzzing.one", name, *options, str(corpus), str(seeds)],
        capture_output=True,
        text=True,
        errors="replace",
    )
    report = "\n".join(
        line for line in (done.stdout + done.stderr).splitlines() if not line.startswith(("INFO", "WARNING"))
    )
    count = re.search(r"number_of_executed_units: (\d+)", report)
    _say(f"{name}: {int(count[1]):,} inputs" if count else f"{name}: ended")
    return name, report[-3000:] if done.returncode else ""


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools.fuzzing", description=__doc__)
    parser.add_argument("--runs", type=int, default=-1, help="inputs in all (default: until the time is over)")
    parser.add_argument("--secs", type=int, default=0, help="seconds of one processor in all (default: no limit)")
    parser.add_argument("--only", choices=sorted(PARSERS), help="one parser alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="parsers at a time")
    given = parser.parse_args()
    names = [given.only] if given.only else list(PARSERS)
    runs = -1 if given.runs < 0 else -(-given.runs // len(names))
    secs = -(-given.secs // len(names)) if given.secs else 0
    folder = Path(os.environ.get("VAR_DIR", "var")).absolute() / "fuzzing"
    with ThreadPoolExecutor(given.jobs) as pool:
        outcomes = list(pool.map(lambda name: fuzz(name, runs, secs, folder), names))
    for name, faults in outcomes:
        if faults:
            _say(f"--- {name}: the input is in {folder / 'faults' / name}\n{faults}")
    return int(any(faults for _, faults in outcomes))


if __name__ == "__main__":
    sys.exit(main())
