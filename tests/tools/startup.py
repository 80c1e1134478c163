"""Whole commands over `import torch`: medians of alternating runs, and their ratio.

uv run python tests/tools/startup.py
"""

import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 7
RECORDING = "traces/recorded/h200/04_a_naive_attention/8_16_1024_64_eager.json.gz"


def seconds(*arguments: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


with tempfile.TemporaryDirectory() as folder:
    commands = {
        "import torch": ("-c", "import torch"),
        "record 04_a": ("04_a_naive_attention.py", "--traces", folder),
        "replay 04_a": ("04_a_naive_attention.py", "--replay"),
        "look": ("-m", "common.look", RECORDING),
    }
    times = {name: [seconds(*command)] for name, command in commands.items()}  # not counted: caches
    for _ in range(RUNS):
        for name, command in commands.items():
            times[name].append(seconds(*command))
medians = {name: statistics.median(values[1:]) for name, values in times.items()}
for name, median in medians.items():
    print(f"{name:14} {median:6.2f} s   {median / medians['import torch']:5.2f} × import torch")
