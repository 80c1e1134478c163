"""What a recording tells of itself: the same on both sides of the file, whole or not at all."""

import json
import re

import msgspec
import pytest
from build import make, region, story, trace, write
from seen import groups

from common.read import recordings
from common.read.trace import read
from common.record import harness
from common.record.harness import Subject
from common.record.workload import Options, Workload
from common.story import METADATA_KEY, Device, Steps, as_builtins, read_story

NAIVE, IN_PLACE = "04_a_naive_attention", "04_b_inplace_ops_attention"


def test_what_the_harness_writes_is_what_the_reader_reads(tmp_path, monkeypatch):
    told = []

    def spy(story):
        told.append(story)
        return as_builtins(story)

    monkeypatch.setattr(harness, "as_builtins", spy)
    made = harness.record(
        lambda q, k, v: harness.torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True
        ),
        Workload(1, 2, 32, 16, "fp32", "cpu"),
        Subject("attention", "fwd", configuration=lambda work: f"of {work}"),
        Options(traces=tmp_path),
        script="script",
        variant="mine",
    )
    assert told == [read(made.trace).story] == [recordings.story_of(made.trace)]
    assert told[0].configuration == "of fp32 [1, 2, 32, 16]" and told[0].table_totals


def test_all_limits_of_a_gpu_survive_the_file():
    device = Device("cuda", "NVIDIA H200", *range(1, 11))
    told = msgspec.structs.replace(read_story(story()), device=device)
    assert read_story(json.loads(json.dumps(as_builtins(told)))) == told
    assert as_builtins(device)["sharedMemPerMultiprocessor"] == 10  # Kineto's own spelling


@pytest.mark.parametrize("change", [{}, {"configuration": "tiles", "table_totals": {"a": "1us"}}])
def test_the_same_keys_whatever_is_known(change):
    """For programs: unknown is null, and never left out."""
    found = as_builtins(read_story(story(**change)))
    assert list(found) == [
        "script", "title", "variant", "label", "shape", "dtype", "mode", "device", "versions",
        "steps", "configuration", "peak_bytes", "relative_error", "table_totals",
        "calls", "unrecorded",
    ]  # fmt: skip


def test_a_rewritten_recording_lies_in_the_same_table(tmp_path):
    """Somebody's tool sorted the keys, or turned them round: the story is the same."""
    make(tmp_path, "a/naive.json", script=NAIVE)
    path = make(tmp_path, "b/in_place.json", script=IN_PLACE)
    before = recordings.story_of(path)
    content = json.loads(path.read_text())
    turned = dict(reversed(content[METADATA_KEY].items()))
    for text in (
        json.dumps(content, sort_keys=True, indent=1),
        json.dumps(content | {METADATA_KEY: turned}),
        json.dumps(dict(reversed(content.items()))),
    ):
        path.write_text(text)
        assert read(path).story == before
        assert read(path).story.conditions == before.conditions
        (one,) = groups(tmp_path)
        assert [variant.key[0] for variant in one.variants] == [NAIVE, IN_PLACE]
        assert one.variants[1].ratio == 1


WRONG = {
    "script": [None, 5, ["a"]],
    "title": [None, 1],
    "variant": [None, 0],
    "label": [None, {}],
    "shape": [
        None, "2x4", [], [2, 4, 256], [2, 4, 256, 64, 1], ["2", 4, 256, 64], [0, 4, 256, 64],
        [2, -4, 256, 64], [2, 4, 1.5, 64], [2, 4, None, 64], [2, 4, 1 << 53, 64],
        [2, 4, 10**30, 64], [2, 4, float("nan"), 64],
    ],
    "dtype": [None, "fp8", 16],
    "mode": [None, "dreaming"],
    "device": [
        None, "H200", {}, {"type": "cuda"}, {"type": "tpu", "name": "v5"},
        {"type": "cuda", "name": 200}, {"type": "cuda", "name": "H200", "numSms": "132"},
        {"type": "cuda", "name": "H200", "numSms": -1},
        {"type": "cuda", "name": "H200", "totalGlobalMem": float("nan")},
    ],
    "versions": [None, "2.11", {}, {"torch": 2.11}, {"torch": "2.11", "cudnn": "9"}],
    "steps": [
        3, {}, {"wait": 1, "warmup": 1}, {"wait": 1, "warmup": 1, "active": 0},
        {"wait": 1, "warmup": -1, "active": 3}, {"wait": 1, "warmup": 1, "active": "3"},
        {"wait": 1, "warmup": 1, "active": 3.5},
    ],
    "configuration": [5, ["tiles"]],
    "peak_bytes": ["1", -1, 1.5, True, 1 << 53, 10**30, float("nan"), float("inf")],
    "relative_error": ["0.1", -0.1, [], float("nan"), float("inf")],
    "table_totals": [None, "1ms", {"Self CUDA time total": 1.0}, [1]],
    "calls": [None, "first", [1]],
    "unrecorded": [
        5, {}, {"process": 1}, {"process": -1, "cpu_ns": []}, {"process": 1, "cpu_ns": [1.5]},
        {"process": 1, "cpu_ns": [-1]},
    ],
}  # fmt: skip


def test_every_field_can_be_wrong():
    assert set(WRONG) == set(as_builtins(read_story(story())))


@pytest.mark.parametrize(("key", "value"), [(key, v) for key, vs in WRONG.items() for v in vs])
def test_a_story_with_anything_wrong_in_it_is_none(tmp_path, key, value):
    assert read_story(story(**{key: value})) is None
    path = write(tmp_path, trace(region(0, 9), about=story(**{key: value})))
    assert read(path).story == recordings.story_of(path)
    if not re.search("NaN|Infinity", path.read_text()):  # in a file they count as missing
        assert read(path).story is None


@pytest.mark.parametrize("key", ["script", "shape", "mode", "device", "versions", "label"])
def test_a_story_without_what_it_must_tell_is_none(key):
    assert read_story({name: value for name, value in story().items() if name != key}) is None


def test_what_is_new_in_a_later_version_is_passed_over():
    assert read_story(story() | {"rank": 0}) == read_story(story())


def test_a_story_cannot_be_changed_or_made_wrong():
    told = read_story(story())
    with pytest.raises(AttributeError):
        told.dtype = "fp32"
    assert hash(told.conditions) == hash(read_story(story(peak_bytes=7)).conditions)
    assert Steps(1, 1, 3) == told.steps


@pytest.mark.parametrize(
    ("script", "number"),
    [(NAIVE, "04_a"), ("experiment_leak", "experiment_leak"), ("04_x", "04_x"), ("", "")],
)
def test_the_number_of_a_script(script, number):
    assert read_story(story(script=script)).number == number
