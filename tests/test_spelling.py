"""Three spellings of a name, and what is left of each when they are brought to one."""

import pytest

from common.read.spelling import normalise


@pytest.mark.parametrize(
    ("spelled", "brought_to"),
    [
        # Kineto's own stays, but for the return type and nobody's namespace
        ("void (anonymous namespace)::f<float, 2>(int)", "f<float, 2>(int)"),
        ("void at::native::f<unsigned long>(long)", "at::native::f<unsigned long>(long)"),
        # Nsight's
        ("void <unnamed>::f<(int)64, (bool)0, (bool)1>(T1 *)", "f<64, false, true>(T1 *)"),
        ("f<(unsigned int)4, (unsigned long)4096>(int)", "f<4, 4096>(int)"),
        ("f<int>(T1)::[lambda(float) (instance 3)]", "f<int>(T1)::{lambda(float)#3}"),
        # numbers and brackets as compilers of other years wrote them
        ("f<64u, 2ul, 7ll>(int)", "f<64, 2, 7>(int)"),
        ("f<g<int> >(int)", "f<g<int>>(int)"),
        # a return type that is a condition, nested or comparing
        ("std::enable_if<!T7, void>::type internal::f<int>(int)", "internal::f<int>(int)"),
        (
            "std::enable_if<(((8)>(0)))&&a::b<c::d>::exists, void>::type vllm::f<int>(int)",
            "vllm::f<int>(int)",
        ),
        # mangled
        ("_Z1fILi64ELb1EEvPf", "f<64, true>(float)"),
        ("_ZN4vllm1gIfEEvi", "vllm::g<float>(int)"),
        # the descriptor of a kernel, as ROCm's tools name it
        ("attn_fwd.kd", "attn_fwd"),
        ("void vllm::f<float>(int) [clone .kd]", "vllm::f<float>(int)"),
        ("_ZN4vllm1gIfEEvi.kd", "vllm::g<float>(int)"),
        # cut: the token that the cut went through says nothing
        ("void f<128, 25...", "f<128, …"),
        ("void f<128, true…", "f<128, …"),
        ("  f(int)  ", "f(int)"),
        ("", ""),
    ],
)
def test_one_spelling(spelled, brought_to):
    assert normalise(spelled) == brought_to


def test_an_endless_name_is_read_as_far_as_a_profiler_writes_one():
    assert len(normalise("f" * 1_000_000)) == 8192
