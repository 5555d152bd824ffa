"""Which kernels communicate with other GPUs, by their names, and which collective they are part of."""

import re
from functools import lru_cache
from typing import Final

from warpladder.data.kernel_names import function_name

#: Libraries whose kernels communicate, as the beginning of a namespace or of a function: NCCL and what is made like it, shared memory
#: between GPUs (NVSHMEM, symmetric memory of PyTorch, user buffers of Transformer Engine), and exchanges between experts.
_LIBRARY: Final = re.compile(
    r"(?:^|::)(?:[nrmhx]ccl|oneccl|msccl|hcom_|(?:nv|roc|i)shmem|roc_shmem|k?userbuffers|multimem_|quickreduce|deep_?ep::|uccl::|pplx|mori::"
    r"|hybrid_ep|Ep(?:Dispatch|Combine)|dlslime::|(?:intra|inter)node(?:_ll)?::|flashinfer::(?:mixed_)?comm::|turbomind::comm::"
    r"|c10d::(?:symmetric_memory|nvshmem_extension)::)|nccl(?:Dev)?Kernel"
)
#: Kernels of these libraries that touch only their own memory.
_OWN_MEMORY: Final = re.compile(r"layout|epilogue|mask_buffer|init_array|topk|routing_map|initialize")
#: Words of a function that communicates, of any library: vLLM, SGLang, TensorRT-LLM, FlashInfer, AITER, PyTorch.
_WORDS: Final = re.compile(
    r"(?:^|_)(?:all_?(?:reduce|gather|to_?all|2_?all)|reduce_?scatter|cross_device_reduce|a_?2_?a|\w+_on_stream_kernel|lamport)(?=_|$|v)"
)
#: Words of kernels that compute: a reduction within a block, a part of another kernel's name, and preparations. A matrix product that also
#: communicates counts as compute.
_COMPUTES: Final = re.compile(
    r"^triton_(?:poi|red|per|tem|for|unk)_|^(?:compute|inplace|init)_|(?:^|_)(?:block|warp|wave|grid|thread|cta|tile)_all_?reduce"
    r"|prepare|sanitize|initialize|gemm|matmul|attention|fmha"
)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
#: Words of a name that tell a collective, the first that is found.
_KINDS: Final = tuple(
    (re.compile(rf"(?:^|_)(?:{words})(?:v|base)?(?=_|$)"), kind)
    for words, kind in (
        ("all_?reduce|cross_device_reduce|rdxn", "all_reduce"),
        ("reduce_?scatter", "reduce_scatter"),
        ("all_?gather|fcollect", "all_gather"),
        ("all_?to_?all|all_?2_?all|a_?2_?a", "alltoall"),
        ("broadcast|bcast", "broadcast"),
        ("send_?recv|send|recv", "sendrecv"),
        ("notify", ""),
        ("barrier", "barrier"),
        ("dispatch", "dispatch"),
        ("combine", "combine"),
        ("reduce", "reduce"),
        ("gather", "gather"),
        ("scatter", "scatter"),
    )
)
#: PyTorch's two-shot all-reduce whose fourth template argument is true is only the first half.
_FIRST_SHOT: Final = re.compile(r"two_shot_all_reduce_kernel<[^,]+(?:, (?:\(int\))?-?\d+){2}, (?:true|\(bool\)1)")
_OF_NCCL: Final = re.compile(r"nccl\w*Kernel_([A-Za-z]+)")
#: What a rank does without the others: they need not be in it at the same time.
_ONE_SIDED: Final = re.compile(r"(?:^|_)(?:put|get|signal|rma|quiet|wait|push|pull)")


def is_communication(kernel: str) -> bool:
    """Whether a kernel of this name communicates with other GPUs."""
    return bool(communication_of(kernel))


@lru_cache(maxsize=1 << 14)
def communication_of(kernel: str) -> str:
    """The collective that a kernel of this name is part of, e.g. `all_reduce`; empty where it does not communicate.

    Only its function counts, and not its arguments: a reduction with `AllReduce` among its template arguments may be of one GPU.
    """
    function = function_name(kernel)
    short = function.rsplit("::", 1)[-1]
    words = _words(short)
    if _COMPUTES.search(words) or not (_LIBRARY.search(function) or _WORDS.search(words)) or _OWN_MEMORY.search(function):
        return ""
    if _FIRST_SHOT.search(kernel):
        return "reduce_scatter"
    of_nccl = _OF_NCCL.search(short)
    return _kind(_words(of_nccl[1] if of_nccl else short)) or (of_nccl[1].lower() if of_nccl else short)


def collective_of(kernel: str, named: str = "") -> str:
    """The collective that a communication kernel is part of, e.g. `all_reduce`, as NCCL's tests name it.

    Args:
        kernel: name of the kernel.
        named: the trace's own name for the collective, such as `_allgather_base`; empty where it has none.
    """
    if not named:
        return communication_of(kernel) or kernel
    plain = named.lower().rsplit("::", 1)[-1].strip("_")
    return _kind(_words(plain)) or plain


def is_one_sided(collective: str) -> bool:
    """Whether a rank does this without the others, as NVSHMEM's puts and signals, so that nobody waits for the last rank."""
    return bool(_ONE_SIDED.search(_words(collective)))


def _words(name: str) -> str:
    """`one_shot_all_reduce_kernel` of `oneShotAllReduceKernel`."""
    return "_".join(_WORD.findall(name)).lower()


def _kind(words: str) -> str:
    return next((kind for found, kind in _KINDS if found.search(words)), "")


#: Bytes of an element, by the names that PyTorch has for its type.
_ELEMENT_BYTES: Final = {
    **dict.fromkeys(("double", "long", "int64", "float64"), 8),
    **dict.fromkeys(("float", "int", "int32", "float32"), 4),
    **dict.fromkeys(("half", "bfloat16", "short", "float16", "int16"), 2),
    **dict.fromkeys(("byte", "char", "bool", "uint8", "int8"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"), 1),
}


def element_bytes(element_type: str) -> int:
    """Bytes of an element, 0 where the type is not known."""
    return _ELEMENT_BYTES.get(element_type.lower(), 0)
