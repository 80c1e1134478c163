"""Numbers, and what is counted, in words."""

from build import forward, kernel, launch, region, story
from seen import look

from common.compare.variants import TUTORIAL
from common.show import words


def test_every_variant_of_the_tutorial_and_no_other_has_its_clause():
    assert words.WHAT.keys() == set(TUTORIAL)
    assert words.what("04_a_naive_attention", "other") == ""


def test_sums(tmp_path):
    def of(*events, **more):
        return words.sums(look(tmp_path, *events, **more))

    one, two = forward(100, ("mul", "k", 5)), forward(900, ("mul", "k", 7))
    assert of(one) == "1 kernel a forward (1 forward) · GPU 5 µs · CPU 30 µs"
    assert of(one, two) == "1 kernel a forward (2 forwards, alike) · GPU 6 µs · CPU 30 ± 0 µs"
    other = forward(900, ("mul", "k", 7), ("mul", "copy", 2), ("zero_", "memset", 1))
    assert of(one, other).startswith(
        "1 kernel + 0 to 1 copies + 0 to 1 memsets a forward (2 forwards, not alike)"
    )
    assert of(region(0, 30)) == "0 working ops a forward (1 forward) · CPU 30 µs"
    assert of(region(0, 30), launch(1, 5, "cudaMemcpyAsync"), kernel(8, 90, 1)).startswith(
        "nothing on the GPU a forward (1 forward) · GPU unknown"
    )
    assert of(one, about=story(peak_bytes=3 << 20)).endswith(" · peak +3 MiB")
    assert of(one, about=story(peak_bytes=None)).endswith(" · peak unknown")
    assert "GPU 1.5 ms" in of(forward(100, ("mul", "k", 1500)))
    assert of(region(0, -1)).startswith("0 working ops a forward (0 forwards) · CPU unknown")
