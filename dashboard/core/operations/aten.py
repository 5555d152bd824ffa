"""Facts about PyTorch's operators that a trace lacks: names of parameters, arithmetic, and the calls that cannot be repeated."""

import re
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any, Final, NamedTuple


class Tensor(NamedTuple):
    """A tensor argument of a trace: its shape, the name of its type, and its strides in elements."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Bytes of its distinct elements: a dimension of stride 0 repeats them."""
        return ELEMENT_BYTES[self.dtype] * prod(n for n, step in zip(self.shape, self.strides, strict=True) if step or not n)

    @property
    def is_dense(self) -> bool:
        """Whether its elements lie side by side, the last axis innermost."""
        expected = 1
        for n, step in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n > 1 and step != expected:
                return False
            expected *= n
        return True

    @property
    def reach_bytes(self) -> int:
        """Bytes from its first element to its last in memory."""
        steps = sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        return ELEMENT_BYTES[self.dtype] * (1 + steps) if 0 not in self.shape else 0


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Name of a type in a trace -> its name in Python.
TYPES: Final = {
    "float": "float32", "double": "float64", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
    "c10::Float8_e4m3fn": "float8_e4m3fn", "c10::Float8_e5m2": "float8_e5m2",
    "long int": "int64", "long": "int64", "int": "int32", "short int": "int16", "short": "int16", "signed char": "int8",
    "unsigned char": "uint8", "unsigned long": "uint64", "unsigned long int": "uint64", "bool": "bool", "c10::complex<float>": "complex64", "c10::complex<double>": "complex128",
}  # fmt: skip
ELEMENT_BYTES: Final = {
    **dict.fromkeys(("complex128",), 16),
    **dict.fromkeys(("float64", "int64", "uint64", "complex64"), 8),
    **dict.fromkeys(("float32", "int32"), 4),
    **dict.fromkeys(("float16", "bfloat16", "int16"), 2),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "int8", "uint8", "bool"), 1),
}


class UnknownNumber(NamedTuple):
    """A number of Python whose value a trace lacks, and a value that stands for it."""

    stand_in: float


#: Type of tensors -> precision of their products. Those of float32 may use TensorFloat-32.
PRECISIONS: Final = {
    "float64": "fp64", "float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "int8": "int8",
}  # fmt: skip
#: In names of kernels that compute in TensorFloat-32, and of those that compute in float32.
_TF32: Final = re.compile(r"tf32|s1688|s884")
_FP32: Final = re.compile(r"sgemm|sgemv|simt|ffma|f32f32_f32f32|gemv", re.IGNORECASE)


def uses_tf32(kernels: Iterable[str]) -> bool:
    """Whether products in float32 use TensorFloat-32, by the names of their kernels."""
    return any(map(_TF32.search, kernels))


def precision(dtype: str, kernels: Sequence[str]) -> str:
    """The precision of products of a type, by the whole names of their kernels; empty where none is known.

    Products in float32 whose kernels tell nothing may be in TensorFloat-32, which takes the least time.
    """
    if dtype == "float32":
        return "fp32" if any(map(_FP32.search, kernels)) and not uses_tf32(kernels) else "tf32"
    return PRECISIONS.get(dtype, "")


#: The same by the type in which the number reaches a point-wise operator.
SOME_NUMBER: Final = {"float64": UnknownNumber(1.5), "int64": UnknownNumber(3)}
WHOLE: Final = ("int64", "uint64", "int32", "int16", "int8", "uint8")

# -- parameters ------------------------------------------------------------------------------------------------------------------

_CONVOLUTION: Final = "stride padding dilation"
_BY_DIMENSIONS: Final = tuple(f"conv{dimensions}d" for dimensions in (1, 2, 3))
#: Operators with products that cuDNN computes.
CONVOLUTIONS: Final = (*_BY_DIMENSIONS, "convolution", "convolution_backward")
#: Operators that are products of matrices.
PRODUCTS: Final = ("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "addmv", "mv")
#: Operators with products whose operations are not counted below for all arguments. Only those with a count have a floor.
_WITH_PRODUCTS: Final = _names(
    "addbmm addr baddbmm chain_matmul convolution_transpose cdist _cdist_forward dot einsum lstm gru rnn_tanh _cudnn_rnn _int_mm _scaled_mm "
    "_grouped_mm _scaled_grouped_mm _weight_int8pack_mm _weight_int4pack_mm bilinear _trilinear multi_head_attention_forward "
    "scaled_dot_product_attention linalg_matmul linalg_solve linalg_inv_ex linalg_cholesky_ex linalg_svd linalg_qr conv_transpose1d "
    "conv_transpose2d conv_transpose3d cudnn_convolution miopen_convolution convolution_overrideable matrix_exp"
)
_ADAM: Final = "params grads exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps lr beta1 beta2 weight_decay eps amsgrad maximize grad_scale found_inf"
_ATTENTION: Final = "gradient query key value"
_OF_FLASH: Final = "out logsumexp cum_seq_q cum_seq_k max_q max_k dropout_p is_causal philox_seed philox_offset scale"
_BATCH_NORM: Final = "x weight bias running_mean running_var training momentum eps"
_PARAMETERS: Final = {
    "addmm": "bias a b beta alpha",
    "addmv": "bias a b beta alpha",
    "baddbmm": "bias a b beta alpha",
    "linear": "x weight bias",
    **dict.fromkeys(_BY_DIMENSIONS, f"x weight bias {_CONVOLUTION} groups"),
    "convolution": f"x weight bias {_CONVOLUTION} transposed output_padding groups",
    "convolution_backward": f"gradient x weight bias_sizes {_CONVOLUTION} transposed output_padding groups wanted",
    "batch_norm": f"{_BATCH_NORM} cudnn_enabled",
    "native_batch_norm": _BATCH_NORM,
    "native_batch_norm_backward": "gradient x weight running_mean running_var save_mean save_invstd training eps wanted",
    "cudnn_batch_norm_backward": "x gradient weight running_mean running_var save_mean save_invstd eps reserve",
    "layer_norm": "x normalized_shape weight bias eps cudnn_enabled",
    "native_layer_norm": "x normalized_shape weight bias eps",
    "native_layer_norm_backward": "gradient x normalized_shape mean rstd weight bias wanted",
    "rms_norm": "x normalized_shape weight eps",
    "group_norm": "x groups weight bias eps cudnn_enabled",
    "scaled_dot_product_attention": "query key value mask dropout_p is_causal scale enable_gqa",
    "_scaled_dot_product_flash_attention_backward": f"{_ATTENTION} {_OF_FLASH}",
    "_scaled_dot_product_efficient_attention_backward": (
        f"{_ATTENTION} attn_bias out logsumexp philox_seed philox_offset dropout_p grad_input_mask is_causal scale"
    ),
    "_scaled_dot_product_cudnn_attention_backward": (
        f"{_ATTENTION} out logsumexp philox_seed philox_offset attn_bias cum_seq_q cum_seq_k max_q max_k dropout_p is_causal scale"
    ),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (
        f"{_ATTENTION} out logsumexp dropout_p is_causal attn_mask scale"
    ),
    "_fused_adam_": _ADAM,
    "_fused_adamw_": _ADAM,
    "_fused_sgd_": (
        "params grads momentum_buffers weight_decay momentum lr dampening nesterov maximize is_first_step grad_scale found_inf"
    ),
    "cat": "tensors dim",
    "stack": "tensors dim",
    "max_pool2d": "x kernel_size stride padding dilation ceil_mode",
    "adaptive_avg_pool2d": "x output_size",
    "threshold_backward": "gradient x threshold",
    "gelu": "x approximate",
    "gelu_backward": "gradient x approximate",
    "silu_backward": "gradient x",
    "_softmax": "x dim half_to_float",
    "_log_softmax": "x dim half_to_float",
    "_softmax_backward_data": "gradient output dim dtype",
    "_log_softmax_backward_data": "gradient output dim dtype",
    "softmax": "x dim dtype",
    "log_softmax": "x dim dtype",
    "copy_": "x source non_blocking",
    "to": "x dtype layout device pin_memory non_blocking copy memory_format",
    "_to_copy": "x dtype layout device pin_memory non_blocking memory_format",
    "clone": "x memory_format",
    "contiguous": "x memory_format",
    "fill_": "x value",
    "sum": "x dim keepdim dtype",
    "mean": "x dim keepdim dtype",
    "var": "x dim correction keepdim",
    "clamp_min_": "x least",
    "addcmul_": "x a b value",
    "addcdiv_": "x a b value",
    "mse_loss": "x target reduction",
    "mse_loss_backward": "gradient x target reduction",
}  # fmt: skip
_BINARY: Final = ("mm", "bmm", "matmul", "mv", "dot")
_PAIRS: Final = ("add", "sub", "rsub")
#: Parameters that hold positive numbers in any program: variances and their inverse roots.
POSITIVE: Final = ("running_var", "save_invstd", "rstd", "exp_avg_sqs", "max_exp_avg_sqs", "state_steps")
#: Parameters that are not read where nothing is dropped.
UNREAD: Final = ("philox_seed", "philox_offset")
#: Operators that are not defined for all real numbers, or whose result grows without limit.
OF_POSITIVE: Final = _names(
    "sqrt rsqrt log log2 log10 log1p reciprocal div pow acos asin atanh acosh addcdiv _foreach_sqrt _foreach_div"
)


def parameters(name: str, count: int) -> list[str]:
    """Names of the parameters of an operator; `x`, or `x0`, `x1` and so on, where they are not known."""
    short = plain(name)
    known = _PARAMETERS.get(short) or _PARAMETERS.get(short.rstrip("_")) or ""
    if short in _BINARY:
        known = "a b"
    elif short.rstrip("_") in _PAIRS and count <= 3:
        known = "x y alpha"
    elif short.rstrip("_") in POINTWISE and not known:
        known = "x y z" if count > 1 else "x"
    names = known.split()
    return names[:count] if len(names) >= count else ["x"] if count == 1 else [f"x{place}" for place in range(count)]


def approximation(kernels: Iterable[str]) -> str:
    """The argument `approximate` of `gelu`, from the whole names of its kernels; empty where they do not tell."""
    found = {match[1] for name in kernels if (match := _APPROXIMATE.search(name))}
    return {"1": "tanh", "2": "none"}[found.pop()] if len(found) == 1 else ""


def most_arguments(name: str) -> int | None:
    """The arguments of an operator without an array for its output; None where they are not known."""
    short = plain(name)
    if short in _BINARY or short.rstrip("_") in ("mul", "div"):
        return 2
    if short.rstrip("_") in _PAIRS:
        return 3
    known = _PARAMETERS.get(short)
    return len(known.split()) if known else None


def plain(name: str) -> str:
    """The name of an operator without its namespace."""
    return name.rpartition("::")[2]


# -- what cannot be called again ---------------------------------------------------------------------------------------------------

#: Operators whose output is random.
RANDOM: Final = _names(
    "dropout dropout_ native_dropout alpha_dropout feature_dropout _fused_dropout bernoulli bernoulli_ rand rand_like randn randn_like "
    "randint randint_like randperm normal normal_ uniform_ random_ exponential_ multinomial rrelu geometric_ cauchy_ log_normal_"
)
#: Operators whose work, or whose right result, depends on the values of their inputs.
BY_VALUE: Final = _names(
    "embedding embedding_backward embedding_dense_backward embedding_bag _embedding_bag index index_select index_add index_add_ index_put "
    "index_put_ _index_put_impl_ index_copy index_copy_ gather gather_backward scatter scatter_ scatter_add scatter_add_ take take_along_dim "
    "masked_select nonzero unique unique_consecutive _unique2 sort argsort topk kthvalue median bincount histc searchsorted bucketize "
    "nll_loss nll_loss_nd nll_loss2d nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward cross_entropy_loss ctc_loss "
    "max_pool2d_with_indices_backward max_pool3d_with_indices_backward repeat_interleave segment_reduce masked_scatter masked_scatter_ "
    "grid_sampler grid_sampler_2d item _local_scalar_dense is_nonzero equal"
)
#: Backward passes of attention. Their arguments `out` and `logsumexp` are computed from the others.
ATTENTION_BACKWARD: Final = tuple(name for name in _PARAMETERS if name.endswith("_backward") and "attention" in name)
#: Operators that take results of the forward pass which only it can compute.
BY_FORWARD: Final = _names(
    "_flash_attention_backward _efficient_attention_backward _cudnn_rnn_backward "
    "_thnn_fused_lstm_cell_backward native_dropout_backward"
)
#: Operators with lists of tensors -> places of the lists that they write, where these are not the first one.
_WRITTEN_LISTS: Final = {"_fused_adam_": (0, 2, 3), "_fused_adamw_": (0, 2, 3), "_fused_sgd_": (0, 2)}
#: Types in names of kernels for lists of tensors, and the sizes of types that such a kernel only copies.
_TYPES_OF_KERNEL: Final = re.compile(r"c10::BFloat16|c10::Half|c10::Float8_e4m3fn|c10::Float8_e5m2|\bfloat\b|\bdouble\b")
_OPAQUE: Final = re.compile(r"OpaqueType<\(?(?:unsigned int\))?(\d+)u?>")
_OF_BYTES: Final = {1: "uint8", 2: "bfloat16", 4: "float32", 8: "float64", 16: "complex128"}
#: Operators that compute nothing: their output is a view of an input, if need be of a copy that another operator inside makes.
VIEWS: Final = _names(
    "t transpose numpy_T permute view view_as _unsafe_view reshape flatten unflatten expand squeeze unsqueeze slice select narrow "
    "as_strided split split_with_sizes chunk unbind diagonal detach alias lift_fresh empty empty_like empty_strided new_empty resize_"
)
#: Operators with a text among their arguments, which a trace does not have -> its parameter.
TEXTS: Final = {"einsum": "equation", "scatter_reduce": "reduce"}
#: Operators whose argument `approximate` is a text, which the names of their kernels tell.
BY_KERNEL: Final = ("gelu", "gelu_", "gelu_backward")
#: Of PyTorch's two kernels of each (ActivationGeluKernel.cu), the first one computes with tanh, the second one with erf.
_APPROXIMATE: Final = re.compile(
    r"Gelu(?:Backward)?CUDAKernelImpl\(at::TensorIteratorBase&, at::native::GeluType\)::\{lambda\(\)#([12])\}"
)
#: Operators that write to inputs which their schema does not mark.
WRITES: Final = {"batch_norm": "running_mean", "native_batch_norm": "running_mean", "cudnn_batch_norm": "running_mean"}
#: Operators that compute each element of the output from the elements at the same place, by the name without a final `_`.
POINTWISE: Final = _names(
    "add sub rsub mul div neg abs relu sigmoid tanh silu gelu exp log log2 log10 log1p sqrt rsqrt reciprocal pow square sin cos clamp "
    "clamp_min clamp_max where maximum minimum addcmul addcdiv lerp threshold threshold_backward sigmoid_backward tanh_backward "
    "silu_backward gelu_backward hardtanh hardswish leaky_relu elu softplus mish erf sign floor ceil round trunc eq ne lt le gt ge "
    "logical_and logical_or logical_not bitwise_and bitwise_or bitwise_not isnan isinf copy clone contiguous to _to_copy fill zero "
    "masked_fill mse_loss_backward"
)
#: Operators beside these that take whole numbers of any value.
_OF_ANY_NUMBERS: Final = _names("sum mean cat stack cumsum amax amin max min any all")


def lists(arguments: tuple[Any, ...]) -> Iterator[list[Tensor]]:
    """The lists of tensors among arguments."""
    yield from (each for each in arguments if isinstance(each, list) and each and isinstance(each[0], Tensor))


def inputs(arguments: tuple[Any, ...]) -> list[Tensor | list[Tensor]]:
    """The tensors that have elements, and the lists of tensors, in order: the inputs of a benchmark."""
    given = [*lists(arguments)]
    return [each for each in arguments if (isinstance(each, Tensor) and 0 not in each.shape) or each in given]


def bytes_of(given: "Tensor | list[Tensor]") -> int:
    """The bytes of an input."""
    return sum(each.bytes for each in flat([given]))


def with_types(name: str, arguments: tuple[Any, ...], kernels: Iterable[str]) -> tuple[Any, ...] | None:
    """Arguments whose lists of tensors have the types that the whole names of the kernels tell; None where they do not.

    Traces have the shapes of such lists without their types. Steps of optimisers are float32. `_foreach_copy_` reads and writes types of
    its own.
    """
    short, found = plain(name), []
    for kernel in kernels:
        found += [TYPES[each] for each in _TYPES_OF_KERNEL.findall(kernel)]
        found += [_OF_BYTES[int(size)] for size in _OPAQUE.findall(kernel) if int(size) in _OF_BYTES]
        if found:
            break
    if not found:
        return None
    given = []
    for place, (parameter, argument) in enumerate(zip(parameters(name, len(arguments)), arguments, strict=True)):
        if argument in [*lists(arguments)]:
            dtype = found[min(place, 1, len(found) - 1)] if short == "_foreach_copy_" else found[0]
            dtype = "float32" if parameter == "state_steps" else dtype
            argument = [each._replace(dtype=dtype) for each in argument]
        given.append(argument)
    return tuple(given)


def takes_any_values(name: str) -> bool:
    """Whether an operator does the same work, and is defined, for whole numbers of any value."""
    short = plain(name)
    return short in POINTWISE or short.rstrip("_") in POINTWISE or short in _OF_ANY_NUMBERS or short.startswith("_foreach_")


def writes_inputs(name: str) -> bool:
    """Whether an operator changes its inputs."""
    short = plain(name)
    return (short.endswith("_") and not short.endswith("__")) or short.startswith("__i") or short in WRITES


# -- bytes and arithmetic ----------------------------------------------------------------------------------------------------------


#: Optimisers that update all parameters in one call.
OPTIMIZERS: Final = ("_fused_adam_", "_fused_adamw_", "_fused_sgd_")
#: Operators that do not read their first input.
_ONLY_WRITE: Final = ("copy_", "fill_", "zero_")


class Work(NamedTuple):
    """The least that any implementation of a call must do: bytes read and written, and operations of products; None where these are not
    known."""

    read: int
    written: int
    flops: int | None


def work(name: str, arguments: tuple[Any, ...]) -> Work:
    """The least work of a call.

    Each input is read once. Outputs are counted where their shape is known here; otherwise the figure is below the least. Inputs that are
    only written, as by `copy_` and `fill_`, are not read.
    """
    short = plain(name)
    tensors = tensors_of(arguments)
    read = sum(each.bytes for each in tensors)
    counted, shape = _arithmetic(short, arguments)
    flops = None if not counted and has_products(name) else counted
    if short in _ONLY_WRITE and tensors:
        return Work(read - tensors[0].bytes, tensors[0].bytes, 0)
    if writes_inputs(name) and short not in WRITES:
        places = _WRITTEN_LISTS.get(short, (0,))
        written = sum(each.bytes for each in tensors_of([arguments[place] for place in places]))
    elif short in _JOIN or short.startswith("_foreach_"):
        written = sum(each.bytes for each in tensors_of(arguments[:1]))
    elif short in ATTENTION_BACKWARD:
        written = sum(each.bytes for each in tensors[1:4])
    elif shape is not None and tensors:
        written = prod(shape) * ELEMENT_BYTES[tensors[0].dtype]
    elif short in _LIKE_FIRST and tensors:
        written = prod(tensors[0].shape) * ELEMENT_BYTES[tensors[0].dtype]
    elif short.endswith("_backward") and tensors:
        written = min(each.bytes for each in tensors[:2])
    else:
        written = 0
    return Work(read, written, flops)


def has_products(name: str) -> bool:
    """Whether arithmetic, and not memory alone, may bound an operator."""
    short = plain(name)
    return short in (*PRODUCTS, *CONVOLUTIONS) or short in _WITH_PRODUCTS or "attention" in short


def arithmetic_type(arguments: tuple[Any, ...]) -> str:
    """The type of the products of a call: of its first tensor. Empty without one."""
    return next((each.dtype for each in tensors_of(arguments)), "")


def reads_less(name: str, arguments: tuple[Any, ...]) -> bool:
    """Whether a call reads less than the memory of its tensors: it reads one of them not at all, or one has gaps."""
    return (
        plain(name) in _ONLY_WRITE
        or any(lists(arguments))
        or any(each.reach_bytes > each.bytes for each in tensors_of(arguments))
    )


#: Operators whose output has all elements of their list.
_JOIN: Final = ("cat", "stack")
#: Operators whose output has the shape, the type and the strides of their first input, beside those in place and most point-wise ones.
_LIKE_FIRST: Final = _names("layer_norm rms_norm batch_norm softmax log_softmax _softmax _log_softmax")
#: Point-wise operators whose output may have another type.
_OTHER_TYPE: Final = _names("eq ne lt le gt ge logical_and logical_or logical_not isnan isinf to _to_copy where masked_fill")


def output(name: str, arguments: tuple[Any, ...]) -> Tensor | None:
    """The output of a call; None where its shape, type or strides are not known here, or where it has several."""
    short = plain(name)
    tensors = [each for each in arguments if isinstance(each, Tensor)]
    if not tensors or len({each.dtype for each in tensors}) > 1 or short.rstrip("_") in _OTHER_TYPE:
        return None
    first = tensors[0]
    if (writes_inputs(name) and short not in WRITES) or short in _LIKE_FIRST:
        return first
    _, shape = _arithmetic(short, arguments)
    if shape is None:
        return None
    if short in POINTWISE:
        return next((each for each in tensors if each.shape == shape and all(each.strides)), None)
    last = tuple(sorted(range(len(shape)), key=lambda axis: -first.strides[axis])) if len(first.shape) == len(shape) else ()
    channels_last = short.startswith("conv") and len(shape) > 2 and last == (0, *range(2, len(shape)), 1)
    return Tensor(shape, first.dtype, _dense(shape, last if channels_last else tuple(range(len(shape)))))


def _dense(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Strides without gaps, for axes in the order of memory, the slowest first."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis], step = step, step * shape[axis]
    return tuple(strides)


def _arithmetic(short: str, arguments: tuple[Any, ...]) -> tuple[int, tuple[int, ...] | None]:
    """Operations of a call, and the shape of its output; 0 and None where they are not known. A multiply-add counts as two."""
    tensors = [each for each in arguments if isinstance(each, Tensor)]
    shapes = [each.shape for each in tensors]
    if short in ("mm", "bmm", "matmul", "linear") and len(shapes) >= 2 and min(map(len, shapes[:2])) >= 2:
        a, b = shapes[:2]
        return _product(a, b[::-1] if short == "linear" else b)
    if short in ("addmm", "baddbmm") and len(shapes) == 3 and min(map(len, shapes[1:])) >= 2:
        return _product(*shapes[1:])
    if (short in ("mv", "dot") and len(shapes) == 2) or (short == "addmv" and len(shapes) == 3):
        return 2 * prod(shapes[-2]), shapes[-2][:-1]
    if short in ("_int_mm", "_scaled_mm") and len(shapes) >= 2 and min(map(len, shapes[:2])) == 2:
        return _product(*shapes[:2])
    if short in (*_BY_DIMENSIONS, "convolution") and len(arguments) >= 7:
        return _convolution(short, arguments)
    if short == "convolution_backward" and len(shapes) == 3 and arguments[7:8] == (False,) and isinstance(arguments[-1], list):
        gradient, _, weight = shapes
        wanted = sum(map(bool, arguments[-1][:2]))
        return 2 * wanted * prod(gradient) * prod(weight[1:]), None
    if short == "scaled_dot_product_attention" and len(shapes) >= 3 and min(map(len, shapes[:3])) >= 2:
        query, key, value = shapes[:3]
        pairs = prod(query[:-1]) * key[-2]
        causal = arguments[5] if len(arguments) > 5 and isinstance(arguments[5], bool) else False
        return 2 * pairs * (query[-1] + value[-1]) // (2 if causal else 1), (*query[:-1], value[-1])
    if short in ATTENTION_BACKWARD and len(shapes) >= 4 and min(map(len, shapes[1:4])) >= 2:
        _, query, key, value = shapes[:4]
        # Five products: the scores anew, the gradients of the scores and of query, key and value.
        named = dict(zip(parameters(short, len(arguments)), arguments, strict=True))
        pairs = prod(query[:-1]) * key[-2] // (2 if named.get("is_causal") is True else 1)
        return 2 * pairs * (3 * query[-1] + 2 * value[-1]), None
    if (short in POINTWISE or short.rstrip("_") in POINTWISE) and shapes:
        return 0, _broadcast(shapes)
    return 0, None


def _product(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, tuple[int, ...] | None]:
    batch = a[:-2] if len(a) >= len(b) else b[:-2]
    shape = (*batch, a[-2], b[-1])
    return 2 * prod(shape) * a[-1], shape


def _convolution(short: str, arguments: tuple[Any, ...]) -> tuple[int, tuple[int, ...] | None]:
    x, weight, _, stride, padding, dilation = arguments[:6]
    lists = all(isinstance(each, list) and all(type(n) is int and n >= 0 for n in each) for each in (stride, padding, dilation))
    if not (isinstance(x, Tensor) and isinstance(weight, Tensor) and lists) or (short == "convolution" and arguments[6]):
        return 0, None
    spatial = len(weight.shape) - 2
    if len(x.shape) != spatial + 2 or any(len(each) not in (1, spatial) for each in (stride, padding, dilation)):
        return 0, None
    if 0 in stride:
        return 0, None
    step, pad, spread = (each * spatial if len(each) == 1 else each for each in (stride, padding, dilation))
    extents = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(x.shape[2:], weight.shape[2:], step, pad, spread, strict=True)
    )
    shape = (x.shape[0], weight.shape[0], *extents)
    if min(extents, default=1) < 1:
        return 0, None
    return 2 * prod(shape) * prod(weight.shape[1:]), shape


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    longest = max(map(len, shapes))
    padded = [(1,) * (longest - len(each)) + each for each in shapes]
    return tuple(max(extents) if 0 not in extents else 0 for extents in zip(*padded, strict=True))


def flat(arguments: Any) -> Any:
    """Arguments, and in place of a list or tuple its elements."""
    for each in arguments:
        if isinstance(each, list) or type(each) is tuple:
            yield from flat(each)
        else:
            yield each


def tensors_of(arguments: Any) -> list[Tensor]:
    return [each for each in flat(arguments) if isinstance(each, Tensor)]
