"""Copies by the TMA, barriers that count and products of warpgroups in the emulator, on kernels that NVRTC compiles too."""

import numpy as np
import pytest

from tests.emulator.emulator import EmulationError, needs_compiler
from tests.emulator.tiny import emulate_on_hopper
from warpladder.workloads.api import TensorMap
from warpladder.workloads.declare.cases import narrowed

pytestmark = needs_compiler

ORDERS = pytest.mark.parametrize("order", ["forward", "backward"])
RNG = np.random.default_rng(3)

LOAD = """
__global__ void k(const __grid_constant__ TensorMap x, float* y) {
  __shared__ __align__(1024) float box[COUNT];
  __shared__ Mbarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, sizeof box);
    LOAD;
  }
  __syncthreads();
  WAIT;
  for (int i = threadIdx.x; i < COUNT; i += 32) y[i] = box[i];
}"""


def loads(copy, count, wait="mbarrier_wait(&full, 0)"):
    return LOAD.replace("LOAD", copy).replace("COUNT", str(count)).replace("WAIT", wait)


def box_of(tensor, first, shape):
    """A box of a tensor, zeros outside."""
    box = np.zeros(shape, np.float32)
    for at in np.ndindex(*shape):
        place = tuple(start + step for start, step in zip(first, at, strict=True))
        if all(0 <= p < extent for p, extent in zip(place, tensor.shape, strict=True)):
            box[at] = tensor[place]
    return box


def inside(box, first, extents):
    """A box at a place of a tensor, zeros where it is outside."""
    rows, columns = (start + np.arange(extent) for start, extent in zip(first, box.shape, strict=True))
    return box * np.outer((rows >= 0) & (rows < extents[0]), (columns >= 0) & (columns < extents[1]))


def exchanged(box):
    """Rows of 32 floats as the 128-byte swizzle has them in shared memory: piece p of row r lies where piece p ^ r % 8 would."""
    found = np.empty_like(box)
    for row in range(len(box)):
        for piece in range(8):
            found[row, 4 * (piece ^ row % 8) :][:4] = box[row, 4 * piece :][:4]
    return found


@ORDERS
@pytest.mark.parametrize("first", [(0, 0), (-3, 5), (13, -2)])
def test_a_box_comes_with_its_pieces_exchanged_and_zeros_outside_of_the_tensor(order, first):
    tensor = RNG.random((20, 36), np.float32)
    source = loads(f"tma_load(box, x, {first[1]}, {first[0]}, &full)", 16 * 32)
    args = (TensorMap("x", (16, 32), 128), "y")
    y = emulate_on_hopper(source, x=tensor, y=np.full(512, np.nan, np.float32), args=args, order=order)
    assert np.array_equal(y.reshape(16, 32), exchanged(box_of(tensor, first, (16, 32))))


def test_a_box_is_rounded_to_tf32_as_it_is_copied_if_the_map_says_so():
    # By hand: 13 bits of fraction go, ties to even, also into the exponent; infinity and what is exact stay.
    pairs = {0x3F800FFF: 0x3F800000, 0x3F801000: 0x3F800000, 0x3F801001: 0x3F802000, 0xBF803000: 0xBF804000, 0x3FFFFFFF: 0x40000000,
             0x3F806000: 0x3F806000, 0x7F800000: 0x7F800000}  # fmt: skip
    x = np.zeros((1, 32), np.uint32)
    x[0, : len(pairs)] = list(pairs)
    args = (TensorMap("x", (1, 32), 128, tf32=True), "y")
    y = emulate_on_hopper(loads("tma_load(box, x, 0, 0, &full)", 32), x=x.view(np.float32), args=args)
    assert y.view(np.uint32)[: len(pairs)].tolist() == list(pairs.values())


@pytest.mark.parametrize(("order", "early"), [("forward", 1), ("backward", np.nan)])
def test_a_box_read_before_the_wait_is_nan_in_one_of_the_orders(order, early):
    wait = "const float early = box[threadIdx.x]; mbarrier_wait(&full, 0); y[threadIdx.x] = early; return"
    args = (TensorMap("x", (2, 32), 128), "y")
    y = emulate_on_hopper(
        loads("tma_load(box, x, 0, 0, &full)", 64, wait), x=np.ones((2, 32), np.float32), args=args, order=order
    )
    assert np.array_equal(y, np.full(32, early), equal_nan=True)


def test_a_block_that_ends_before_its_box_is_there_is_an_error():
    source, args = loads("tma_load(box, x, 0, 0, &full)", 64, ""), (TensorMap("x", (2, 32), 128), "y")
    with pytest.raises(EmulationError, match="the block ends while the TMA copies to its shared memory"):
        emulate_on_hopper(source, x=np.ones((2, 32), np.float32), y=np.zeros(64, np.float32), args=args, order="backward")


STORE = """
__global__ void k(const float* x, const __grid_constant__ TensorMap y) {
  __shared__ __align__(1024) float box[16 * 32];
  for (int i = threadIdx.x; i < 16 * 32; i += 32) box[i] = x[i];
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_store(y, COLUMN, ROW, box);
    tma_store_commit();
    WAIT;
    for (float& value : box) value = -1;
    tma_store_wait_read<0>();
  }
}"""


def stored(box, first, wait="tma_store_wait_read<0>()", order="forward"):
    """A tensor of zeros after a store of a box, which is written over behind the wait."""
    source = STORE.replace("ROW", str(first[0])).replace("COLUMN", str(first[1])).replace("WAIT", wait)
    args = ("x", TensorMap("y", (16, 32), 128))
    return emulate_on_hopper(source, x=box, y=np.zeros((20, 36), np.float32), args=args, order=order)


@ORDERS
@pytest.mark.parametrize("first", [(0, 0), (-3, 5), (13, -2)])
def test_a_box_is_stored_with_its_pieces_exchanged_back_and_nothing_outside_of_the_tensor(order, first):
    box = 1 + RNG.random((16, 32), np.float32)
    found, expected = stored(exchanged(box), first, order=order), inside(box, first, (20, 36))
    assert np.array_equal(box_of(found, first, (16, 32)), expected)
    assert np.count_nonzero(found) == np.count_nonzero(expected)


def test_a_store_that_nobody_waits_for_is_an_error():
    source = "__global__ void k(const __grid_constant__ TensorMap y) {\n__shared__ __align__(1024) float box[64];\n"
    store = "if (threadIdx.x == 0) box[0] = 1, tma_store(y, 0, 0, box), tma_store_commit();\n}"
    with pytest.raises(
        EmulationError, match="ends with 1 products of its warpgroup or stores of the TMA that it has not waited for"
    ):
        emulate_on_hopper(source + store, y=np.zeros((2, 32), np.float32), args=(TensorMap("y", (2, 32), 128),))


@pytest.mark.parametrize(("order", "found"), [("forward", 1), ("backward", -1)])
def test_a_box_that_is_written_over_before_it_was_read_is_wrong_in_one_of_the_orders(order, found):
    assert np.all(stored(np.ones((16, 32), np.float32), (0, 0), wait="", order=order)[:16, :32] == found)


BYTES = """
__global__ void k(const float* x, float* y) {
  __shared__ __align__(1024) float shared[64];
  for (int i = threadIdx.x; i < 64; i += 32) shared[i] = x[i];
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_store_bytes(TO, FROM, BYTES);
    tma_store_commit();
    tma_store_wait_read<0>();
  }
}"""


def bytes_stored(to="y", start="shared", count=64, order="forward"):
    """80 zeros after a store of bytes from 64 floats of shared memory."""
    source = BYTES.replace("TO", to).replace("FROM", start).replace("BYTES", str(count))
    x = np.arange(1, 65, dtype=np.float32)
    return emulate_on_hopper(source, x=x, y=np.zeros(80, np.float32), args=("x", "y"), order=order)


@ORDERS
def test_bytes_are_stored_where_they_belong_and_no_others(order):
    expected = np.zeros(80, np.float32)
    expected[4:44] = np.arange(9, 49)
    assert np.array_equal(bytes_stored("y + 4", "shared + 8", 160, order), expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"to": "y + 2"}, "multiples of 16"),
        ({"start": "shared + 1"}, "multiples of 16"),
        ({"count": 20}, "multiples of 16"),
        ({"start": "x"}, "in no shared memory"),
        ({"start": "shared + 60", "count": 32}, "a copy of 32 bytes where shared memory has 16"),
        ({"to": "y + 76", "count": 32}, "past the end of y"),
    ],
)
def test_bytes_that_the_tma_cannot_store_are_an_error(given, message):
    with pytest.raises(EmulationError, match=message):
        bytes_stored(**given)


BOXES = """
__global__ void k(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap y) {
  __shared__ __align__(1024) float box[4 * 32];
  __shared__ Mbarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, sizeof box);
    tma_load(box, x, -4, 1, 2, &full);
  }
  __syncthreads();
  mbarrier_wait(&full, 0);
  if (threadIdx.x == 0) {
    tma_store(y, 0, 2, 1, box);
    tma_store_commit();
    tma_store_wait_read<0>();
  }
}"""


def test_a_box_of_three_axes_has_rows_that_lie_apart():
    x = np.arange(5 * 3 * 64, dtype=np.float32).reshape(5, 3, 64)
    y = np.full((6, 3, 32), np.nan, np.float32)
    maps = (TensorMap("x", (4, 1, 32), 128), TensorMap("y", (4, 1, 32), 128))
    given = emulate_on_hopper(BOXES, x=x, y=y.copy(), args=maps)
    expected = y.copy()
    expected[1:5, 2] = 0  # beyond the last row, and before the first column
    expected[1:4, 2, 4:] = x[2:5, 1, :28]
    assert np.array_equal(given, expected, equal_nan=True)


PRODUCT = """
__global__ void k(const __grid_constant__ TensorMap x, float* y, int columns_of_x) {
  __shared__ __align__(1024) float a[64 * 32];
  extern __shared__ char memory[];
  float* b = aligned_1024<float>(memory);
  __shared__ Mbarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, (64 + COLUMNS) * 128);
    tma_load(a, x, 0, 0, &full);
    for (int n = 0; n < COLUMNS; n += 64) tma_load(b + n * 32, x, 0, 64 + n, &full);
  }
  __syncthreads();
  mbarrier_wait(&full, 0);
  float sums[COLUMNS / 2];
  for (float& sum : sums) sum = 1;
  const WgmmaRows rows(threadIdx.x);
  unsigned values[16];
  for (int i = 0; i < 16; ++i) values[i] = __float_as_uint(rows.load(a, i / 4, i % 4));
  const unsigned long long of_a = wgmma_operand(a), of_b = wgmma_operand(b);
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma_tf32(sums, OPERAND, of_b + 2 * i, i > FIRST);
  wgmma_commit();
  WAIT;
  wgmma_keep(sums);
  for (int i = 0; i < COLUMNS / 2; ++i)
    y[(rows.row + rows.down(i)) * COLUMNS + rows.across(i)] = sums[i];
}"""


def product(x, columns, operand, first=-1, wait="wgmma_wait<0>()", order="forward"):
    """1 (for first = -1) plus 64 rows of x times the rows after them, each of 32 floats."""
    source = PRODUCT.replace("COLUMNS", str(columns)).replace("OPERAND", operand).replace("FIRST", str(first))
    return emulate_on_hopper(
        source.replace("WAIT", wait),
        x=x,
        y=np.zeros((64, columns), np.float32),
        args=(TensorMap("x", (64, 32), 128), "y", np.int32(32)),
        block=(128, 1, 1),
        dynamic=columns * 128 + 1024,
        order=order,
    )


@ORDERS
@pytest.mark.parametrize(("columns", "operand"), [(256, "of_a + 2 * i"), (64, "values + 4 * i"), (192, "values + 4 * i")])
def test_a_product_of_a_warpgroup_is_that_of_the_matrices(columns, operand, order):
    x = RNG.integers(-8, 9, (64 + columns, 32)).astype(np.float32)  # whole numbers, which TF32 holds exactly
    assert np.array_equal(product(x, columns, operand, order=order), 1 + x[:64] @ x[64:].T)
    assert np.array_equal(product(x, columns, operand, first=0, order=order), x[:64] @ x[64:].T)


ACROSS = """
__global__ void k(const __grid_constant__ TensorMap x, float* y) {
  __shared__ __align__(1024) unsigned short a[64 * 64];
  extern __shared__ char memory[];
  unsigned short* b = aligned_1024<unsigned short>(memory);
  __shared__ Mbarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, 3 * sizeof a);
    tma_load(a, x, 0, 0, &full);
    for (int box = 0; box < 2; ++box) tma_load(b + box * 64 * 64, x, 64 * (1 + box), 0, &full);
  }
  __syncthreads();
  mbarrier_wait(&full, 0);
  float sums[64];
  for (float& sum : sums) sum = 1;
  const unsigned long long of_a = A_ACROSS ? wgmma_operand_across(a, sizeof a) : wgmma_operand(a), of_b = wgmma_operand_across(b, sizeof a);
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma_across<A_ACROSS, true>(sums, of_a + (A_ACROSS ? 128 : 2) * i, of_b + 128 * i, i > FIRST);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_keep(sums);
  for (int i = 0; i < 64; ++i)
    y[(threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i % 4 / 2 * 8) * 128 + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2] = sums[i];
}"""


@ORDERS
@pytest.mark.parametrize(("a_across", "first"), [(True, -1), (False, -1), (True, 0)])
def test_a_product_of_operands_across_is_that_of_the_transposed_matrices(a_across, first, order):
    x = RNG.integers(-8, 9, (64, 192)).astype(np.float32)  # whole numbers, which BF16 holds exactly
    found = emulate_on_hopper(
        ACROSS.replace("A_ACROSS", str(a_across).lower()).replace("FIRST", str(first)),
        x=narrowed(x, "bfloat16"),
        y=np.zeros((64, 128), np.float32),
        args=(TensorMap("x", (64, 64), 128), "y"),
        block=(128, 1, 1),
        dynamic=2 * 64 * 128 + 1024,
        order=order,
    )
    a = x[:, :64].T if a_across else x[:, :64]
    assert np.array_equal(found, (first < 0) + a @ x[:, 64:])


@pytest.mark.parametrize("operand", ["of_a + 2 * i", "values + 4 * i"])
def test_a_product_sees_19_bits_of_its_operands(operand):
    x = np.zeros((64 + 256, 32), np.float32)
    x[0, 5], x[64, 5] = 1 + 2.0**-10 + 2.0**-11, 1 + 2.0**-11  # of which 1 + 2^-10, and 1, are left
    assert product(x, 256, operand, first=0)[0, 0] == 1 + 2.0**-10


def test_a_product_that_nobody_waits_for_is_an_error():
    x = np.ones((64 + 64, 32), np.float32)
    with pytest.raises(
        EmulationError, match="ends with 4 products of its warpgroup or stores of the TMA that it has not waited for"
    ):
        product(x, 64, "values + 4 * i", wait="")


BARRIER = """
__global__ void k(const __grid_constant__ TensorMap x, float* y) {
  __shared__ __align__(128) float box[64];
  __shared__ Mbarrier full, other;
  if (threadIdx.x == 0) mbarrier_init(&full, ARRIVALS);
  __syncthreads();
  if (threadIdx.x == 0) {
STEPS
  }
  y[threadIdx.x] = 1;
}"""
EXPECT = "    mbarrier_arrive_expect(&full, 256);\n"
COPY = "    tma_load(box, x, 0, 0, &full);\n"
WAIT = "    mbarrier_wait(&full, 0);\n"


@ORDERS
@pytest.mark.parametrize(
    ("arrivals", "steps"), [(1, EXPECT + COPY + WAIT), (2, COPY + EXPECT + "mbarrier_arrive(&full);" + WAIT)]
)
def test_a_phase_ends_when_all_have_arrived_and_the_bytes_are_there_in_any_order(arrivals, steps, order):
    source = BARRIER.replace("ARRIVALS", str(arrivals)).replace("STEPS", steps)
    x, args = np.ones((2, 32), np.float32), (TensorMap("x", (2, 32), 128), "y")
    assert emulate_on_hopper(source, x=x, args=args, order=order).sum() == 32


@pytest.mark.parametrize(
    ("arrivals", "steps", "what"),
    [
        (1, EXPECT + WAIT, r"tiny.cu:9: .*deadlock: of 32 threads, .* 1 at a barrier that counts, 31 have returned"),
        (2, EXPECT + COPY + WAIT, r"tiny.cu:10: .*deadlock: .* 1 at a barrier that counts"),
        (
            1,
            EXPECT + "mbarrier_arrive(&full);",
            "an arrival too many: all 1 of this mbarrier's phase have arrived, and 256 bytes",
        ),
        (2, COPY + "mbarrier_arrive(&full);" + COPY, "the kernel ends, and 512 bytes came to an mbarrier that nobody expected"),
        (1, EXPECT.replace("256", "128") + COPY, "128 bytes more came to an mbarrier than its phase expected"),
        (1, EXPECT, "the kernel ends, and 256 bytes that an mbarrier expects never came"),
        (1, "    mbarrier_arrive(&other);", "tiny.cu:8: .*an mbarrier is used that mbarrier_init has not made"),
        (1, "    tma_load(y, x, 0, 0, &full);", "tiny.cu:8: .*is in no shared memory"),
        (1, "    tma_load(box + 4, x, 0, 0, &full);", "tiny.cu:8: .*multiple of 128 bytes of shared memory"),
    ],
)
def test_a_barrier_that_is_used_wrongly_is_an_error_and_no_hang(arrivals, steps, what):
    source = BARRIER.replace("ARRIVALS", str(arrivals)).replace("STEPS", steps)
    with pytest.raises(EmulationError, match=what):
        emulate_on_hopper(source, x=np.ones((2, 32), np.float32), args=(TensorMap("x", (2, 32), 128), "y"), compiled=False)


@pytest.mark.parametrize(
    ("tensor_map", "what"),
    [
        (TensorMap("z", (2, 32)), "tensor map of z, which is no buffer; known: x, y"),
        (TensorMap("x", (2, 32, 1)), "a map has 1 to 5 axes, and a box as many"),
        (TensorMap("x", (2, 32), 0, (3, 32)), "the buffer has 64 elements"),
        (TensorMap("x", (2, 6), 0, (10, 6)), "inner rows are a multiple of 16 bytes"),
        (TensorMap("x", (257, 4)), "a box has 1 to 256 elements along an axis"),
        (TensorMap("x", (2, 6)), "inner rows of a multiple of 16 bytes"),
        (TensorMap("x", (2, 32), 64), "the inner row of a box is no longer"),
        (TensorMap("x", (2, 16), 128), "only whose inner row is as long as the swizzle"),
    ],
)
def test_a_tensor_map_that_the_driver_refuses_or_the_emulator_lacks_is_an_error(tensor_map, what):
    source = "__global__ void k(const __grid_constant__ TensorMap x, float* y) {}"
    with pytest.raises(EmulationError, match=what):
        emulate_on_hopper(source, x=np.ones((2, 32), np.float32), args=(tensor_map, "y"), compiled=False)


def test_registers_prefetches_and_conditional_stores():
    source = """
    __global__ void __launch_bounds__(256) k(const float* x, float* y) {
      if (threadIdx.x < 128) give_registers<40>();
      else take_registers<232>();
      prefetch_l2(x + threadIdx.x % 32);
      float first = 0;
      copy_register(first, x[threadIdx.x % 32]);
      store_if(threadIdx.x % 2 && threadIdx.x < 32, y + threadIdx.x - threadIdx.x % 2, first, -first);
    }"""
    y = emulate_on_hopper(source, block=(256, 1, 1))
    assert y.tolist() == [value for pair in range(16) for value in (2 * pair + 1, -2 * pair - 1)]
