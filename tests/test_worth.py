"""What is said to be worth seeing in a recording: only what its trace holds."""

from build import FFMA, NVJET, SCRIPTS, forward, make, story, trace, write
from seen import groups, shipped

from common.compare.worth import worth_seeing
from common.show.worth import in_words

NAIVE, IN_PLACE = SCRIPTS["04_a"], SCRIPTS["04_b"]


def lesson(variant) -> str:
    return in_words(worth_seeing(variant))


def test_the_copy_that_comes_and_goes():
    assert lesson(shipped()["04_a naive"]).startswith("+1 copy from masked_fill")
    assert lesson(shipped()["04_b in-place"]).startswith("the copy of 04_a is gone")


def test_a_lesson_says_only_what_its_trace_holds():
    said = {name: lesson(variant) for name, variant in shipped().items()}
    assert "Tensor Cores unused by the matmuls, which read fp32" in said["04_c math"]
    assert "builds the mask in every call" in said["04_c math"]
    assert said["04_c flash"] == "one kernel, FlashAttention-2, 8 of 64 warps on an SM"
    assert "behind a memset" in said["04_c cudnn"]
    assert said["04_c auto"].startswith("PyTorch took cudnn")
    assert "Tensor Cores unused" not in said["04_a naive"]


def test_a_copy_is_seen_without_a_gpu_too(tmp_path):
    events = forward(100, ("masked_fill clone copy_", "", 0), ("softmax _softmax", "", 0))
    about = story(script=NAIVE, device={"type": "cpu", "name": "CPU"}, peak_bytes=None)
    (one,) = groups(write(tmp_path, trace(events, about=about, device=None)))
    assert "+1 copy from masked_fill" in lesson(one.variants[0])


def test_a_copy_that_is_gone_with_other_steps_is_not_called_the_only_change(tmp_path):
    copying = ("mul", "k", 5), ("masked_fill clone copy_", "copy", 5)
    make(tmp_path, "a/n.json", *copying, script=NAIVE)
    make(tmp_path, "b/i.json", ("softmax", "k", 5), ("mul", "k", 5), script=IN_PLACE)
    (one,) = groups(tmp_path)
    assert "is gone" not in lesson(one.variants[1])


def test_matmuls_on_cuda_cores_are_told_from_their_names(tmp_path):
    for name, kernel in (("ffma", FFMA), ("nvjet", NVJET)):
        path = make(tmp_path, f"{name}.json", ("bmm", kernel, 9), ("mul", "k", 5), script=NAIVE)
        (one,) = groups(path)
        told = "Tensor Cores unused by the matmuls" in lesson(one.variants[0])
        assert told == (name == "ffma")
