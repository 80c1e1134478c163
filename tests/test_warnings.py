"""What the reader must know before trusting a number; and no cry of wolf."""

import json

from build import FLASH, copy, forward, kernel, launch, op, recordings, region, story, trace, write
from seen import look, recorded

from common.read.observe import observe
from common.read.trace import read
from common.show.warnings import warnings


def said(tmp_path, *events, **more) -> list[str]:
    return warnings(look(tmp_path, *events, **more))


ONE = forward(100, ("mul", "k", 5))


def test_clean_traces_are_not_warned_of(tmp_path):
    for what in recordings():
        assert warnings(recorded(*what)) == []
    assert said(tmp_path, ONE) == []


def test_warning_of_non_finite_numbers(tmp_path):
    for count, words in ((1, "1 non-finite number "), (2, "2 non-finite numbers ")):
        text = json.dumps(trace(ONE, [op("x", 1, 1) | {"x": "HERE"}] * count))
        path = write(tmp_path, text.replace('"HERE"', "NaN").encode())
        assert warnings(observe(read(path))) == [f"{words}(NaN or Infinity) treated as missing"]


NO_GPU = (
    "no GPU events in the trace (CUPTI unavailable or CUDA activity off): "
    "kernel counts and GPU times are unknown"
)


def test_warning_of_no_gpu(tmp_path):
    on_cpu = forward(100, ("mul", "", 0))
    assert said(tmp_path, on_cpu) == [NO_GPU]
    assert said(tmp_path, on_cpu, about=story()) == [NO_GPU]
    # Our own recording of a CPU has none and misses none.
    assert said(tmp_path, on_cpu, about=story(device={"type": "cpu", "name": "CPU"})) == []


def test_warning_of_lost_records(tmp_path):
    assert said(tmp_path, region(0, 50), launch(1, 5)) == [
        "1 launch has no kernel record; GPU records were lost"
    ]
    assert said(tmp_path, region(0, 50), launch(1, 5), launch(2, 10)) == [
        "2 launches have no kernel record; GPU records were lost"
    ]


def test_warning_of_shared_correlation(tmp_path):
    two = [kernel(1, 20, 5), kernel(1, 120, 5)]
    shared = "correlation 1 belongs to 2 kernels but its launch (hipLaunchKernel) starts one; "
    first = [region(0, 50), launch(1, 10, "hipLaunchKernel"), two]
    counted = "all counted with that launch"
    assert said(tmp_path, first) == [f"{shared}no launch has no kernel; {counted}"]
    assert said(tmp_path, first, launch(2, 30))[0] == (
        f"{shared}launch 2 has no kernel; joined in order of time"
    )
    assert said(tmp_path, first, [launch(n, 30 + n) for n in range(2, 9)])[0] == (
        f"{shared}launch 2, launch 3, launch 4 and 4 more have no kernel; {counted}"
    )


def test_many_shared_correlations_do_not_fill_the_screen(tmp_path):
    events = [[launch(n, n), kernel(n, 200 + 9 * n, 1), kernel(n, 900 + 9 * n, 1)]
              for n in range(1, 41)]  # fmt: skip
    told = said(tmp_path, region(0, 90), events)
    assert len(told) == 4
    assert told[-1] == "37 more correlation ids of several kernels"


def test_warning_of_correlation_0(tmp_path):
    assert said(tmp_path, ONE, kernel(0, 50, 5)) == [
        "1 kernel has correlation 0 and cannot be linked"
    ]
    assert said(tmp_path, ONE, kernel(0, 50, 5), kernel(0, 60, 5)) == [
        "2 kernels have correlation 0 and cannot be linked"
    ]


def test_warning_of_work_from_before(tmp_path):
    assert said(tmp_path, ONE, kernel(9, 50, 5), copy(8, 60, 5)) == [
        "2 GPU events without a launch in the file, left out: launched before recording started, "
        "as by a warm-up that was not synchronised"
    ]
    assert said(tmp_path, ONE, copy(8, 60, 5))[0].startswith("1 GPU event without a launch")


def test_warning_of_unknown_times(tmp_path):
    lost = {"ts": 0, "dur": 0}
    one = [region(0, 50), launch(1, 5), launch(2, 6), kernel(1, 100, 5) | lost]
    assert said(tmp_path, one, kernel(2, 100, 5)) == [
        "1 kernel has ts 0 / dur 0; its time is unknown"
    ]
    assert said(tmp_path, one, kernel(2, 0, 0) | lost) == [
        "2 kernels have ts 0 / dur 0; their times are unknown"
    ]
    assert said(tmp_path, one, copy(2, 0, 0) | lost) == [
        "2 GPU events have ts 0 / dur 0; their times are unknown"
    ]


def test_warning_of_a_duration_that_cannot_be(tmp_path):
    events = [
        region(0, 50), launch(1, 5), launch(2, 6), launch(3, 7),
        kernel(1, 100, 10), kernel(2, 120, 5_000_000), kernel(3, 145, 5),
    ]  # fmt: skip
    assert said(tmp_path, events) == [
        "kernel 2 lasts 5000000 us but the next kernel on its stream starts 25 us after its "
        "start; its duration (and the CUDA total) is not credible"
    ]


def test_no_warning_of_a_duration_that_no_number_rests_on(tmp_path):
    """Of another region's kernel."""
    events = [
        region(0, 50), launch(1, 5), kernel(1, 100, 10), region(500, 50, "other"), launch(2, 505),
        launch(3, 506), kernel(2, 600, 5_000_000), kernel(3, 700, 5),
    ]  # fmt: skip
    seen = observe(read(write(tmp_path, trace(events))), "fwd")
    assert (warnings(seen), seen.gpu_ns) == ([], 10_000)


def test_warning_of_unfinished_regions(tmp_path):
    assert said(tmp_path, ONE, region(500, -1)) == [
        "1 region has a negative or zero duration (unfinished), left out"
    ]
    assert said(tmp_path, ONE, region(500, -1), region(600, 0)) == [
        "2 regions have a negative or zero duration (unfinished), left out"
    ]


def test_warning_of_forwards_that_differ(tmp_path):
    assert said(tmp_path, ONE, forward(900, ("add", "k", 5))) == [
        "the forwards differ: steps and times are those of the first"
    ]


def sdpa(backend):
    return forward(
        100,
        (f"scaled_dot_product_attention _scaled_dot_product_{backend}", FLASH, 5),
    )


def test_warning_of_another_backend_than_asked_for(tmp_path):
    assert said(tmp_path, sdpa("attention_math"), about=story(variant="auto")) == [
        "no fused kernel served this shape; math materialises the score matrix"
    ]
    assert said(tmp_path, sdpa("flash_attention"), about=story(variant="cudnn")) == [
        "backend cudnn was asked for, and flash ran"
    ]
    for variant in ("auto", "flash", "", "triton"):
        assert said(tmp_path, sdpa("flash_attention"), about=story(variant=variant)) == []
