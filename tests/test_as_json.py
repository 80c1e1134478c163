"""What programs read: the same values in microseconds, and null for unknown, never 0."""

import pytest
from build import forward, kernel, launch, recording, recordings, region, truth
from seen import look, recorded

from common.compare.claims import Answer, Claim
from common.compare.compared import Compared, compare
from common.compare.rows import align, rows
from common.show import as_json

KEYS = {
    "file", "region", "regions", "unfinished_regions", "profiler_steps", "kernels_per_forward",
    "copies_per_forward", "memsets_per_forward", "launches_per_forward", "cuda_us_per_forward",
    "cuda_sum_us", "gpu_busy_us", "cpu_us_per_forward", "unlinked_kernels", "total_kernels",
    "streams", "steps", "warnings",
}  # fmt: skip
STEP_KEYS = {
    "kind", "name", "family", "tensor_cores", "ops", "us", "grid", "block", "registers",
    "shared_memory", "occupancy_reported_pct", "occupancy_pct", "occupancy_limit",
}  # fmt: skip


def of(seen) -> dict:
    return as_json.as_json(compare(seen))


@pytest.mark.parametrize("what", recordings())
def test_numbers_for_programs(what):
    """All of them from plain loops over the recording."""
    found, forwards = of(recorded(*what)), truth(recording(*what))
    assert KEYS <= found.keys()
    work = [item for forward in forwards for item in forward["work"]]
    us = [float(item["event"]["dur"]) for item in work]
    assert found["regions"] == found["profiler_steps"] == 3
    for key, cat in (("kernels", "kernel"), ("copies", "gpu_memcpy"), ("memsets", "gpu_memset")):
        counts = {sum(i["event"]["cat"] == cat for i in f["work"]) for f in forwards}
        assert counts == {found[f"{key}_per_forward"]}
    assert found["cuda_sum_us"] == pytest.approx(sum(us), abs=0.001)
    assert found["cuda_us_per_forward"] == pytest.approx(sum(us) / 3, abs=0.001)
    assert found["cpu_us_per_forward"] == pytest.approx(
        float(sum(f["dur"] for f in forwards)) / 3, abs=0.001
    )
    assert found["gpu_busy_us"] <= found["cuda_sum_us"] + 0.001
    assert found["total_kernels"] == sum(i["event"]["cat"] == "kernel" for i in work)
    assert found["streams"] == sorted({item["event"]["args"]["stream"] for item in work})
    assert len(found["steps"]) == len(forwards[0]["work"])
    for step, item in zip(found["steps"], forwards[0]["work"], strict=True):
        assert STEP_KEYS <= step.keys()
        args = item["event"]["args"]
        assert (step["name"], step["ops"]) == (item["event"]["name"], item["ops"])
        for ours, theirs in (
            ("grid", "grid"),
            ("block", "block"),
            ("registers", "registers per thread"),
            ("shared_memory", "shared memory"),
            ("occupancy_reported_pct", "est. achieved occupancy %"),
        ):
            assert step[ours] == args.get(theirs)
    assert found["warnings"] == [] and "guess" not in found and "claims" not in found


def test_unknown_is_null_and_never_0(tmp_path):
    bare = {"registers per thread": None, "shared memory": None, "grid": None, "block": None,
            "est. achieved occupancy %": None}  # fmt: skip
    step = of(look(tmp_path, forward(100, ("f", "k", 5), **bare)))["steps"][0]
    for key in STEP_KEYS - {"kind", "name", "family", "ops", "us"}:
        assert step[key] is None, key

    found = of(look(tmp_path, forward(100, ("mul", "", 0)), device=None))
    for key in ("kernels", "copies", "memsets"):
        assert found[f"{key}_per_forward"] is None
    for key in ("cuda_us_per_forward", "cuda_sum_us", "gpu_busy_us"):
        assert found[key] is None
    assert (found["launches_per_forward"], found["total_kernels"]) == (0, 0)  # these are known

    found = of(look(tmp_path, region(0, -1)))
    for key in ("kernels_per_forward", "launches_per_forward", "cpu_us_per_forward"):
        assert found[key] is None
    assert (found["regions"], found["unfinished_regions"]) == (1, 1)


def test_a_number_when_all_agree_else_a_list_in_time_order(tmp_path):
    one, two = forward(100, ("mul", "k", 5)), forward(900, ("mul", "k", 5), ("add", "k", 5))
    found = of(look(tmp_path, two, one))
    assert found["kernels_per_forward"] == found["launches_per_forward"] == [1, 2]
    assert found["copies_per_forward"] == 0
    # Steps of forwards that differ are told apart.
    assert [(step["forward"], step["kind"]) for step in found["steps"]] == [
        (0, "mul"), (1, "mul"), (1, "add"),
    ]  # fmt: skip


def test_streams_of_any_sort_are_listed(tmp_path):
    events = [region(0, 50)] + [
        event
        for n, stream in enumerate((7, "7", "compute", 20, 7), 1)
        for event in (launch(n, n), kernel(n, 100 + n, 1, stream=stream))
    ]
    streams = of(look(tmp_path, events))["streams"]
    assert sorted(map(repr, streams)) == sorted(map(repr, (7, "compute", 20)))  # "7" is 7


def test_guess_and_claims_are_in_it_when_there_are_any():
    seen = recorded("04_a")
    pairs = tuple(align(("matmul", "cat"), rows(seen.steps)))
    answers = ((Claim("s", None), Answer("no", "e")),)
    found = as_json.as_json(Compared(seen, pairs, True, answers=answers))
    assert {"guess": "matmul", "seen": "matmul"} in found["guess"]
    assert {"guess": "cat", "seen": None} in found["guess"]
    assert {"guess": None, "seen": "copy"} in found["guess"]
    assert found["claims"] == [{"claim": "s", "verdict": "no", "evidence": "e"}]


def test_differences_for_programs():
    a, b = recorded("04_a"), recorded("04_b")
    found = as_json.difference_json(a, b)
    assert (found["a"], found["b"]) == (of(a), of(b))
    assert [step["kind"] for step in found["steps"] if step["only_in"]] == ["copy"]
    [copied] = [step for step in found["steps"] if step["only_in"] == "a"]
    us = [float(w["event"]["dur"]) for f in truth(recording("04_a")) for w in f["work"]
          if w["event"]["cat"] == "gpu_memcpy"]  # fmt: skip
    assert copied["a_us"] == pytest.approx(sum(us) / 3, abs=0.001)
    assert copied["b_us"] is None
