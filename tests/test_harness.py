"""Recording: the schedule, the files, and every way it can go wrong. On the CPU."""

import errno
import json
import re
import socket
import sys
import time

import pytest
import torch
import torch.nn.functional as F

from common.cli import UserError
from common.read.observe import observe
from common.read.trace import read
from common.record import harness
from common.record.harness import Subject
from common.record.workload import Options, Workload
from common.story import METADATA_KEY

WORK = Workload(1, 2, 32, 16, "fp32", "cpu")


def sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def record(folder, attention=sdpa, work=WORK, stores_scores=False, **options):
    return harness.record(
        attention,
        work,
        Subject("attention", "fwd", stores_scores),
        Options(traces=folder, **options),
        script="script",
    )


def test_a_recording_tells_its_own_story(tmp_path):
    made = record(tmp_path, active=4)
    about = json.loads(made.trace.read_text())[METADATA_KEY]
    assert about["shape"] == [1, 2, 32, 16] and about["dtype"] == "fp32"
    assert about["script"] == "script" and about["label"] == "fwd" and about["mode"] == "eager"
    assert about["steps"] == {"wait": 1, "warmup": 1, "active": 4}
    assert about["versions"]["torch"] == torch.__version__
    assert about["peak_bytes"] is None  # unknown on the CPU, and never 0
    assert 0 < about["relative_error"] < 1e-5


def test_only_active_steps_are_recorded(tmp_path):
    calls = []

    def counted(q, k, v):
        calls.append(1)
        return sdpa(q, k, v)

    seen = observe(read(record(tmp_path, counted, warmup=2, active=5).trace))
    assert len(seen.forwards) == 5 and seen.trace.profiler_steps == 5
    assert len(calls) == 1 + 1 + 2 + 5  # check, wait, warm-up, active


class OnGpu:
    """Stands in for a tensor of a GPU."""

    is_cuda = True


@pytest.mark.filterwarnings("ignore:CUDA is not available")
@pytest.mark.parametrize(
    ("synchronise", "expected"),
    [("never", [6]), ("warm-up", [3, 6]), ("every step", [1, 2, 3, 4, 5, 6])],
)
def test_when_the_harness_synchronises(monkeypatch, synchronise, expected):
    """After which of wait 1, warm-up 2, active 3: before the profiler goes on to the next."""
    done = []
    step = harness.profile.step

    def synchronize():
        if sys._getframe(1).f_globals["__name__"] == harness.__name__:  # the profiler does, too
            done.append("synchronise")

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    monkeypatch.setattr(harness.profile, "step", lambda self: done.append("step") or step(self))
    options = Options(warmup=2, active=3)
    harness._profile(lambda x: done.append("forward"), [OnGpu()], "fwd", options, synchronise)
    wanted = []
    for number in range(1, 7):
        wanted += ["forward", *["synchronise"] * (number in expected), "step"]
    assert done == wanted


class Memory:
    """A GPU's allocator: what is held, and the most that was since the peak was last reset."""

    def __init__(self, monkeypatch, held, peak):
        self.held, self.peak = held, peak
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: self.held)
        monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: self.peak)
        monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", self.reset)

    def reset(self):
        self.peak = self.held

    def forward(self, needs):
        self.peak = max(self.peak, self.held + needs)


@pytest.mark.parametrize("needs", [0, 300])
@pytest.mark.parametrize("earlier", [0, 10_000])  # of another variant in this process
def test_the_peak_is_of_this_forward_and_over_what_was_there_before(monkeypatch, needs, earlier):
    memory = Memory(monkeypatch, held=1000, peak=1000 + earlier)
    assert harness._peak_bytes(lambda x: memory.forward(needs), OnGpu()) == needs


on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
MIB = 1 << 20


@on_gpu
def test_the_peak_on_a_gpu_is_that_of_one_forward():
    before = torch.empty(512 * MIB, dtype=torch.uint8, device="cuda")
    del before  # the process's peak, from earlier
    held = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")

    def forward(x):
        torch.empty(32 * MIB, dtype=torch.uint8, device="cuda")

    assert harness._peak_bytes(forward, held) == 32 * MIB


@on_gpu
@pytest.mark.parametrize("synchronise", ["warm-up", "every step"])
def test_nothing_of_the_warm_up_is_in_a_gpu_s_recording(tmp_path, synchronise):
    """Though its forwards still run when they have been launched: each takes milliseconds."""
    work = Workload(8, 16, 4096, 64, "bf16", "cuda")
    made = harness.record(
        lambda q, k, v: sum(sdpa(q, k, v) for _ in range(20)) / 20,
        work,
        Subject("attention", "fwd"),
        Options(traces=tmp_path, warmup=2),
        script="script",
        synchronise=synchronise,
    )
    trace = read(made.trace)
    seen = observe(trace)
    assert not seen.leaked and not seen.lost and seen.alike and len(seen.forwards) == 3
    assert len(trace.gpu) == sum(len(forward.steps) for forward in seen.forwards)
    first = min(forward.span.start for forward in seen.forwards)
    assert all(event.start >= first for event in trace.gpu)
    assert trace.story.peak_bytes >= work.batch * work.heads * work.seq * work.head_dim * 2


def test_the_table_holds_every_row_whole(tmp_path):
    text = record(tmp_path).table.read_text()
    assert "fwd" in text and "Self CPU time total" in text


def test_no_host_name_and_no_path(tmp_path):
    content = record(tmp_path).trace.read_text()
    assert "host_name" not in content and "traceName" not in content
    assert str(tmp_path) not in content
    if len(socket.gethostname()) > 4:
        assert socket.gethostname() not in content


def test_nothing_else_is_left_in_the_folder(tmp_path):
    made = record(tmp_path)
    assert sorted((tmp_path / "script").iterdir()) == sorted([made.trace, made.table])


@pytest.mark.parametrize(
    ("work", "options", "expected"),
    [
        (Workload(8, 16, 1024, 64, "bf16", "cuda"), {}, "8_16_1024_64_eager"),
        (Workload(8, 16, 1024, 64, "bf16", "cuda"), {"compile": True}, "8_16_1024_64_compile"),
        (Workload(1, 2, 3, 4, "fp16", "cuda"), {}, "1_2_3_4_fp16_eager"),
        (Workload(1, 2, 3, 4, "bf16", "cpu"), {}, "1_2_3_4_cpu_eager"),
        (
            Workload(1, 2, 3, 4, "fp32", "cpu"),
            {"warmup": 2, "active": 30, "compile": True},
            "1_2_3_4_fp32_cpu_warmup2_active30_compile",
        ),
    ],
)
def test_tag_spells_what_is_not_default(work, options, expected):
    assert harness.tag(Options(**options), work) == expected


def test_a_recording_that_is_replaced_is_named(tmp_path, capsys):
    record(tmp_path)
    assert capsys.readouterr().err == ""
    record(tmp_path)
    assert "is replaced" in capsys.readouterr().err


def test_a_wrong_result_is_not_recorded(tmp_path):
    with pytest.raises(UserError, match=r"attention is wrong .* relative error .* not recorded"):
        record(tmp_path, lambda q, k, v: v)
    assert not list((tmp_path / "script").iterdir())


def test_refusals_show_the_reasons_that_torch_only_warns_about(tmp_path):
    def refuses(q, k, v):
        import warnings

        warnings.warn(
            "Flash attention kernel not used because: (Triggered internally at x.cpp:1)",
            stacklevel=1,
        )
        warnings.warn(
            "head_dim 60 is not a multiple of 8. (Triggered internally at x.cpp:2)", stacklevel=1
        )
        raise RuntimeError("No available kernel. Aborting execution.")

    with pytest.raises(UserError) as error:
        record(tmp_path, refuses)
    text = str(error.value)
    assert "head_dim 60 is not a multiple of 8;" in text and "fp32 [1, 2, 32, 16]" in text
    assert "Triggered" not in text and "\n" not in text


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_out_of_memory_counts_the_scores(tmp_path, error):
    def greedy(q, k, v):
        raise error

    with pytest.raises(UserError, match=r"out of memory: attention needs .* for the scores"):
        record(tmp_path, greedy, stores_scores=True)
    with pytest.raises(UserError, match=r"out of memory: .* smaller --batch"):
        record(tmp_path, greedy)


def test_a_bug_in_the_attention_is_not_called_a_refusal(tmp_path):
    with pytest.raises(AttributeError):
        record(tmp_path, lambda q, k, v: q.no_such_thing)


def test_a_folder_that_cannot_be_made_is_named_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write to .*file.*--traces"):
        record(tmp_path / "file", lambda q, k, v: pytest.fail("ran"))


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("common.cli.os.fsync", full)
    with pytest.raises(UserError, match=r"No space left on device; nothing was kept"):
        record(tmp_path)
    assert not list((tmp_path / "script").iterdir())


def test_an_interrupt_while_writing_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr("common.cli.os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        record(tmp_path)
    assert not list((tmp_path / "script").iterdir())


RAW = b"""{
  "schemaVersion": 1,
    "host_name": "somebody-laptop",
    "traceEvents": [
  {"ph": "X"}
  ],
  "traceName": "/home/somebody/raw.json"
}
"""


def test_story_goes_in_and_host_and_path_come_out():
    about = {"note": r"a \1 backslash and ünïcode"}
    trace = json.loads(harness.with_story(RAW, about))
    assert trace == {METADATA_KEY: about, "schemaVersion": 1, "traceEvents": [{"ph": "X"}]}


@pytest.mark.parametrize("length", range(0, len(RAW) - 3, 7))
def test_a_trace_cut_short_is_refused(length):
    """The profiler does not say when the disk is full."""
    with pytest.raises(UserError, match="no whole trace"):
        harness.with_story(RAW[:length], {})


def test_the_profiler_and_torch_stay_quiet(tmp_path, capfd):
    record(tmp_path)
    time.sleep(0.1)
    out, err = capfd.readouterr()
    assert out == "" and not re.search("profiler|WARN|ERROR", err)


@pytest.mark.parametrize(
    ("setting", "said"),
    [("disable", "TORCH_COMPILE_DISABLE turns torch.compile off"),
     ("suppress_errors", "TORCHDYNAMO_SUPPRESS_ERRORS hides why")],
)  # fmt: skip
def test_eager_code_is_not_recorded_as_compiled(tmp_path, monkeypatch, setting, said):
    monkeypatch.setattr(torch, "compile", lambda function: function)  # what both come to
    with (
        torch._dynamo.config.patch({setting: True}),
        pytest.raises(UserError, match="no forward ran compiled code") as refused,
    ):
        record(tmp_path, compile=True)
    assert said in str(refused.value)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
