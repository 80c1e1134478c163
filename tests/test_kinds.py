"""One word for a step: from the table of families, from what a kernel's name says it does, from the
ops that launched it. Never from the words for people."""

import pytest

from common.read.families import FAMILIES
from common.read.kernel_names import decode
from common.read.kernel_rules import RULES
from common.read.kinds import (
    CALLS_OTHERS,
    KIND_OF_OP,
    MAY_USE_TENSOR_CORES,
    PART_OF,
    VOCABULARY,
    kind_of_kernel,
    kind_of_op,
    kind_of_path,
    kind_of_step,
)

NVJET = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
SGEMM = "volta_sgemm_64x64_nn"
CUDNN_CONV = (
    "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_"
    "stage4_warpsize2x2x1_g1_tensor16x8x8_alignc4_execute_kernel"
)
CLAMP = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::"
    "launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar)::{lambda()#1}>(int)"
)
ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>)"
)
RADIX_SORT = "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>>"
ENGINE = "autograd::engine::evaluate_function: "


def kind(*path: str, name: str | None = None, sort: str = "kernel") -> str:
    return kind_of_step(path, name, sort)


def kind_of_name(name: str) -> str | None:
    return kind_of_kernel(decode(name))


# ── The tables ────────────────────────────────────────────────────────────────────────────────────


def test_every_kind_is_a_word_that_a_guess_may_use():
    kinds = {family.kind for family in FAMILIES.values()} | set(KIND_OF_OP.values())
    kinds |= {kind_of_name(rule.example) for rule in RULES}
    kinds |= set(PART_OF).union(*PART_OF.values()) | MAY_USE_TENSOR_CORES
    assert kinds - {None} <= set(VOCABULARY)
    assert len(set(VOCABULARY)) == len(VOCABULARY)


def test_an_op_that_calls_others_has_a_kind_itself():
    assert all(kind_of_op(op) for op in CALLS_OTHERS)


# ── Families: the words for people decide nothing ─────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # "FBGEMM" has GEMM in it, "CuTe DSL kernel (not attention)" has attention
        ("void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*)", "index"),
        ("void split_embedding_codegen_forward_unweighted_kernel<float, float>(…)", "embedding"),
        (
            "kernel_cutlass_kernel_flashinfernormkernelsrmsnormRMSNormKernel_object_at__tensorptr",
            "normalization",
        ),
        ("kernel_cutlass_something_new", None),
        # one kind for one thing, whichever library serves it
        (CUDNN_CONV, "conv"),
        ("cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1", "conv"),
        ("igemm_bwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1", "conv"),
        ("miopenSp3AsmConv_v21_1_3_gfx9_fp32_f2x3_stride1", "conv"),
        ("void wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, int, int)", "conv"),
        (
            "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<"
            "(flashinfer::MaskMode)1, 16u, 1u, 4u, 8u, 8u, 1u, 4u>>",
            "attention",
        ),
        (
            "fmhaSm100fKernel_QkvE4m3OBfloat16HQk576HV512PagedKvCausalP64VarSeqQ128Kv128Context",
            "attention",
        ),
        ("fmha_v2_flash_attention_fp16_64_32_S_qkv_128_causal_sm86_kernel_nl", "attention"),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "attention"),
        ("Cijk_Ailk_Bjlk_BBS_BH_Bias_HAS_SAV_UserArgs_MT128x64x32_MI32x32x1_SN_", "matmul"),
        (NVJET, "matmul"),
        ("void gemvNSP_kernel<float, float, float, float, 1, 16, 4, 1024>", "matmul"),
        ("fused_moe_kernel", "matmul"),
        ("void aiter::fmoe_bf16_pertokenFp8_g1u1_silu<int>(int)", "matmul"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", "matmul"),
        ("void vllm::rms_norm_kernel<c10::BFloat16, 8, 2>(…)", "normalization"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0E", "normalization"),
        ("void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(…)", "normalization"),
        ("void cuApplyLayerNorm<float, float, float>(…)", "normalization"),
        ("_rms_norm_forward_kernel", "normalization"),
        ("void vllm::act_and_mul_kernel<c10::BFloat16, true>(c10::BFloat16*)", "activation"),
        ("_swiglu_forward_kernel", "activation"),
        ("void rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "rope"),
        ("void sglang::fused_rope_kernel<true, 128l, false, __nv_bfloat16>(…)", "rope"),
        ("void vllm::moe::topkGating<8, 128, 4, 16, 32, int, __nv_bfloat16>", "routing"),
        ("void moe::dev::routing::routingIndicesHistogramKernel<int>", "routing"),
        (
            "void tensorrt_llm::kernels::quantize_with_block_size<(tensorrt_llm::"
            "BlockScaleQuantizationType)2, __nv_bfloat16, 32, true>(int)",
            "quantize",
        ),
        ("void kDequantizeBlockwise<float, 512, 64, 8, 2>(float*)", "quantize"),
        ("void kgemm_4bit_inference_naive<__half, 128, 16>(int)", "matmul"),
        ("void kOptimizerStatic8bit1StateBlockwise<float, 3, 256, 1>(float*)", "optimizer"),
        (
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::"
            "(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous "
            "namespace)::FusedAdamMathFunctor<float, 4>>",
            "optimizer",
        ),
        # a write into the KV cache is no attention, whatever its name boasts
        ("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16>(…)", "index"),
        ("void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, __nv_bfloat16>(…)", "index"),
        ("void causal_conv1d_fwd_kernel<Causal_conv1d_fwd_kernel_traits<128, 4>>", "conv"),
        ("void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<128, 16>>", "scan"),
        ("void elemWiseRNNcell<float, float, float, (cudnnRNNMode_t)0>(int)", "rnn"),
        ("void regular_fft<192u, EPT<12u, 16u>, 16u>", "fft"),
        ("void nchwToNhwcKernel<float, float, float, true, false>(int)", "copy"),
        (RADIX_SORT, "sort"),
        ("void cub::DeviceScanKernel<cub::DeviceScanPolicy<int>::Policy600>(int*)", "scan"),
        # what is not known stays unknown
        ("frobnicate_v9", None),
        ("void vllm::frobnicate_kernel<int>(int)", None),
        ("triton_poi_fused_0", None),
    ],
)
def test_kind_by_the_name_alone(name, expected):
    assert kind_of_name(name) == expected
    assert kind(name=name) == (expected or "other")


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymDevArgs)",
        "mscclKernel_Sum_float_LL_false(ncclDevComm*, mscclAlgo*, mscclWork*)",
        "void deep_ep::intranode::dispatch<(int)2, (int)768, (int)8192>(int4 *, float *)",
        "void deep_ep::internode::combine<false, 8, __nv_bfloat16, 8, 2, 16, 24>(int4*, float*)",
        "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*, float*)",
        "void deep_ep::internode::notify_dispatch<false, 4>(int const*, int*, int)",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
        "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(int)",
        "void (anonymous namespace)::one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(int)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
        "void sglang::cross_device_reduce_2stage<__half, 8>(sglang::RankData*)",
        "void aiter::cross_device_reduce_2stage<__hip_bfloat16, 8, false>(aiter::RankData*)",
        "void (anonymous namespace)::all_reduce_one_shot_push_kernel<__half, 8u, true>(int)",
        "void (anonymous namespace)::all_reduce_two_shot_kernel<__nv_bfloat16, 8u, true>(int)",
        "void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 8>(int)",
        "void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<int>",
        (
            "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<("
            "flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8, "
            "false, false>(flashinfer::trtllm_allreduce_fusion::AllReduceFusionParams<int>)"
        ),
        "void userbuffers_fp16_sum_inplace_gpu_rr_rs<2>(int, int, int, int)",
        "kuserbuffers_pushsend(int*, int*, int4*, int4*, int)",
        "void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)",
        "EpCombineIntraNodeKernel_bf16",
    ],
)
def test_communication_has_many_names(name):
    assert kind_of_name(name) == "communication"
    assert kind("vllm::all_reduce", name=name) == "communication"


def test_the_layout_that_a_dispatch_is_planned_by_is_no_communication():
    """DeepEP counts on this GPU which token goes where: nothing leaves it."""
    layout = "void deep_ep::internode::get_dispatch_layout<256, 32, 8>(long const*, int*)"
    assert kind_of_name(layout) == "routing"


# ── Ops ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("aten::mul_", "mul"),
        ("aten::copy_", "copy"),
        ("MmBackward0", "matmul"),
        (f"{ENGINE}ConvolutionBackward0", "conv"),
        ("aten::convolution_backward", "conv"),
        ("aten::native_layer_norm_backward", "normalization"),
        ("FusedRmsNormBackward0", "normalization"),
        ("CudnnBatchNormBackward0", "normalization"),
        ("aten::threshold_backward", "activation"),
        ("GeluBackward0", "activation"),
        ("aten::_softmax_backward_data", "softmax"),
        ("LogSoftmaxBackward0", "softmax"),
        ("aten::max_pool2d_with_indices_backward", "pool"),
        ("MaxPool2DWithIndicesBackward0", "pool"),
        ("aten::embedding_dense_backward", "embedding"),
        ("aten::nll_loss_backward", "loss"),
        ("aten::_flash_attention_backward", "attention"),
        ("ScaledDotProductFlashAttentionBackward0", "attention"),
        ("aten::_index_put_impl_", "index"),
        ("aten::scatter_add_", "index"),
        ("aten::native_dropout_backward", "random"),
        ("aten::bernoulli_", "random"),
        ("aten::_fused_adamw_", "optimizer"),
        ("aten::_foreach_addcdiv_", "optimizer"),
        ("aten::_foreach_norm", "reduce"),
        ("aten::_foreach_copy_", "copy"),
        ("aten::cumsum", "scan"),
        ("aten::topk", "sort"),
        ("aten::_cudnn_rnn_backward", "rnn"),
        ("aten::_fft_r2c", "fft"),
        ("record_param_comms", "communication"),
        ("c10d::allreduce_", "communication"),
        ("symm_mem::multimem_all_reduce_", "communication"),
        ("torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>", "embedding"),
        ("CompiledFunctionBackward", None),
        ("torch::autograd::AccumulateGrad", None),
        ("my_ops::frobnicate_backward", None),
        ("aten::view", None),
        ("mul of everything", None),
    ],
)
def test_kind_of_an_op(op, expected):
    assert kind_of_op(op) == expected


def test_the_nearest_op_names_an_elementwise_kernel():
    assert kind("aten::linear", "aten::add_", name=ADD) == "add"
    assert kind("torch::autograd::AccumulateGrad", "aten::add_", name=ADD) == "add"
    # recomputed inside the backward of a relu (activation checkpointing), not part of it
    assert kind("ReluBackward0", "aten::native_batch_norm", name=ADD) == "normalization"


def test_an_op_may_be_a_part_of_another():
    assert kind("aten::relu_", "aten::clamp_min_", name=CLAMP) == "activation"
    assert kind("aten::clamp_min_", name=CLAMP) == "math"
    assert kind("aten::clamp", "aten::relu_", "aten::add", name=ADD) == "add"
    gather = "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*)"
    assert kind("aten::embedding", "aten::index_select", name=gather) == "embedding"
    assert kind("aten::index_select", name=gather) == "index"
    assert kind_of_path(("aten::to", "aten::_to_copy", "aten::copy_")) == "cast"
    assert kind_of_path(("aten::contiguous", "aten::clone", "aten::copy_")) == "copy"


def test_a_convolution_served_by_a_gemm_is_a_convolution():
    conv = ("aten::conv2d", "aten::convolution", "aten::_convolution", "aten::cudnn_convolution")
    assert kind(*conv, name=SGEMM) == "conv"
    assert kind(f"{ENGINE}ConvolutionBackward0", "aten::convolution_backward", name=SGEMM) == "conv"
    assert kind("aten::conv2d", "aten::_slow_conv2d_forward", "aten::addmm", name=SGEMM) == "conv"
    assert kind("aten::linear", "aten::addmm", name=SGEMM) == "matmul"
    assert kind("my_ops::conv_like", name=SGEMM) == "matmul"


def test_an_elementwise_kernel_beside_a_gemm_is_no_gemm():
    """addmm copies its bias into the result first."""
    copy = (
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::"
        "native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}>(int)>(int)"
    )
    assert kind("aten::linear", "aten::addmm", name=copy) == "copy"
    assert kind("aten::linear", "aten::addmm", name="unheard_of_kernel") == "matmul"


def test_a_copy_of_bytes_is_no_cast():
    path = ("aten::to", "aten::_to_copy", "aten::copy_")
    assert kind(*path, name="Memcpy HtoD (Pageable -> Device)", sort="copy") == "copy"
    assert kind("aten::cat", name="Memcpy DtoD (Device -> Device)", sort="copy") == "cat"
    assert kind(name="Memcpy DtoD (Device -> Device)", sort="copy") == "copy"


def test_a_sort_inside_an_op_is_the_ops():
    path = ("aten::embedding_backward", "aten::embedding_dense_backward")
    assert kind(*path, name=RADIX_SORT) == "embedding"
    assert kind("aten::sort", name=RADIX_SORT) == "sort"


def test_a_memset_stays_one():
    assert kind("aten::linear", "aten::addmm", name="Memset (Device)", sort="memset") == "memset"


# ── Compiled kernels ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # the matmul ran elsewhere: only what is fused behind it is here
        ("triton_poi_fused_addmm_gelu_view_15", "activation"),
        ("triton_poi_fused_convolution_relu_3", "activation"),
        ("triton_red_fused_mm_sum_2", "reduce"),
        ("triton_poi_fused_addmm_0", "fused"),
        ("triton_poi_fused__scaled_dot_product_flash_attention_cat_view_1", "cat"),
        # a template is the matmul, with what is fused behind it
        ("triton_tem_fused_mm_25", "matmul"),
        ("triton_tem_fused_addmm_gelu_7", "matmul"),
        ("triton_tem_fused_flex_attention_0", "attention"),
        ("triton_tem_fused_convolution_1", "conv"),
        ("triton_tem_fused_0", "other"),
        # one kind or several
        ("triton_per_fused__softmax_0", "softmax"),
        ("triton_per_fused__softmax_masked_fill_mul_0", "fused"),
        ("triton_per_fused_native_layer_norm_0", "normalization"),
        ("triton_poi_fused__to_copy_1", "cast"),
        ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_1", "fused"),
        ("triton_poi_fused_gelu_gelu_backward_view_7", "activation"),
        ("triton_poi_fused_embedding_0", "embedding"),
        ("triton_poi_fused_native_dropout_0", "random"),
        ("triton_poi_fused_view_0", "other"),
        ("triton__0d1d2d", "other"),
    ],
)
def test_a_compiled_kernel_is_what_it_does_itself(name, expected):
    assert kind("Torch-Compiled Region: 0/0", name=name) == expected


def test_a_cut_list_of_ops_is_no_list():
    assert kind_of_name("triton_poi_fused_mul_...") is None
    assert kind_of_name("triton_poi_fused_mul_add_view_...") == "fused"
    assert kind_of_name("triton_tem_fused_mm_...") == "matmul"


def test_without_a_kernel_the_ops_decide():
    assert kind("aten::linear", "aten::addmm", sort="op") == "matmul"
    assert kind("aten::frobnicate", sort="op") == "other"
    assert kind(sort="op") == "other"


def test_hostile_ops_return_a_word():
    for op in ("", "Backward", "Backward0", ENGINE, "aten::", "_backward", "::", "\ud800" * 9, "_"):
        assert kind(op, sort="op") == "other"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("graph_0_cpp_fused__softmax_masked_fill_mul_view_0", "fused"), ("cpp_fused_mul_3", "mul"),
     ("graph_12_cpp_fused_0", "fused"), ("cpp_fused_view_relu_1", "activation"),
     ("my_cpp_fused_mul_0x", None)],
)  # fmt: skip
def test_what_inductor_compiles_for_the_cpu_is_a_step(name, kind):
    assert kind_of_op(name) == kind
