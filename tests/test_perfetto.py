"""The engine that readers will open a recording with finds in it what our reader finds."""

import gzip
import json
import socket
import struct
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from build import ROOT, recording, tool

from common.read.trace import read

pytestmark = pytest.mark.perfetto
SHIPPED = (ROOT / "traces" / "recorded", ROOT / "traces" / "experiments")
TOOLS = Path(__file__).parent / "tools"


@pytest.fixture(scope="module")
def perfetto():
    return tool("perfetto")


@pytest.fixture(scope="module")
def ui(perfetto):
    if why := perfetto.missing():
        pytest.skip(why)
    with perfetto.perfetto() as ui:
        yield ui


@pytest.mark.parametrize(
    "path",
    sorted(path for folder in SHIPPED for path in folder.rglob("*.json*")),
    ids=lambda path: f"{path.parent.name}-{path.name.partition('.')[0]}",
)
def test_a_shipped_recording(ui, perfetto, path):
    ui.open(path, draw=False)
    assert ui.complaints() == {}
    assert ui.found() == perfetto.ours(read(path))


def test_three_thousand_events(ui, perfetto, tmp_path):
    grow, path = tool("grow"), tmp_path / "grown.json"
    grow.write(path, grow.grow(recording("04_c", backend="math"), 3000), False)
    ui.open(path)
    assert ui.complaints() == {}
    assert ui.found() == perfetto.ours(read(path))


@pytest.mark.parametrize("packed", [True, False])
def test_the_viewer_that_reports_name(ui, perfetto, tmp_path, packed):
    path = recording("04_b")
    if not packed:
        path = tmp_path / "plain.json"
        path.write_bytes(gzip.decompress(recording("04_b").read_bytes()))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    viewer = Path(sys.executable).parent / "vizviewer"
    command = [viewer, "--server_only", "--port", str(port), path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert "Running vizviewer" in server.stdout.readline()
            with ui.at(f"http://localhost:{port}/") as viewed:
                assert viewed.complaints() == {}
                assert viewed.found() == perfetto.ours(read(recording("04_b")))
        finally:
            server.terminate()


def doctored(folder, change) -> Path:
    trace = json.loads(gzip.decompress(recording("04_a").read_bytes()))
    change([event for event in trace["traceEvents"] if event.get("cat") == "kernel"])
    path = folder / "doctored.json"
    path.write_text(json.dumps(trace))
    return path


def test_a_kernel_that_perfetto_drops_is_noticed(ui, perfetto, tmp_path):
    def overlap(kernels):
        kernels[2]["ts"] -= 60

    path = doctored(tmp_path, overlap)
    ui.open(path)
    assert ui.complaints() == {"slice_drop_overlapping_complete_event": 1}
    assert (ui.found()["kernel"], perfetto.ours(read(path))["kernel"]) == (14, 15)


def test_a_kernel_that_nothing_launched_is_noticed(ui, perfetto, tmp_path):
    def orphan(kernels):
        kernels[2]["args"]["correlation"] = 999_999

    path, whole = doctored(tmp_path, orphan), perfetto.ours(read(recording("04_a")))
    ui.open(path)
    found = ui.found()
    changed = {key for key in whole if found[key] != whole[key]}
    assert changed == {"launched in attn_fwd"} and found["launched in attn_fwd"] == 20
    assert found == perfetto.ours(read(path))


def test_the_command_tells_the_same_from_the_different(ui, perfetto, tmp_path, capsys, monkeypatch):
    def overlap(kernels):
        kernels[2]["ts"] -= 60

    monkeypatch.setattr(perfetto, "perfetto", lambda: nullcontext(ui))
    assert perfetto.main([recording("04_a")]) == 0
    assert perfetto.main([doctored(tmp_path, overlap)]) == 1
    same, differs, why = capsys.readouterr().out.splitlines()
    assert same.startswith("same ") and "15 kernel," in same
    assert differs.startswith("DIFFERS ") and "slice_drop_overlapping_complete_event" in why


def test_a_picture_frames_both_lanes_of_one_forward(ui, monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    pictures = tool("pictures")
    before = ui.page.viewport_size
    ui.page.set_viewport_size({"width": 1100, "height": 600})
    try:
        png = pictures.draw(ui, pictures.ALL["naive"])
    finally:
        ui.page.set_viewport_size(before)
    names = ui.page.evaluate("app.trace.workspace.flatTracks.map((track) => track.name)")
    width, height = struct.unpack(">II", png[16:24])
    assert [name.split()[0] for name in names] == ["thread", "stream"]
    assert png.startswith(b"\x89PNG") and width > 200 and height > 100
    assert ui.page.evaluate("document.getElementById('picture')") is None
    chosen = ui.page.evaluate("Number(app.trace.selection.selection.eventId)")
    assert ui.ask(f"select category from slice where id = {chosen}") == [["gpu_memcpy"]]


def test_an_error_that_perfetto_shows_is_noticed(ui):
    dialog = "<div class='pf-modal-dialog'>Oops</div>"
    ui.page.evaluate("(html) => document.body.insertAdjacentHTML('beforeend', html)", dialog)
    try:
        with pytest.raises(RuntimeError, match="Perfetto says: Oops"):
            ui.ask("select 1")
    finally:
        ui.page.evaluate("document.querySelector('.pf-modal-dialog').remove()")
