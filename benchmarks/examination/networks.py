"""Right programs of neural networks, in NumPy and in PyTorch."""

from benchmarks.examination.texts import programs

CASES = programs("""
## quantise | n=[200_000]
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)

def first(x):
    return np.clip(np.rint(x / (4 / 127)), -127, 127).astype(np.int8)

def second(x):
    return np.clip(np.rint(x * (127 / 4)), -127, 127).astype(np.int8)

## quantise_rows_off_by | n=[300] | compare={'q': warpladder.compare.off_by(1, share=1e-3), 'scale': warpladder.compare.allclose(rtol=1e-6)}
def inputs(n, rng):
    return rng.standard_normal((n, 500), np.float32)

def first(x):
    scale = np.abs(x).max(axis=1, keepdims=True) / 127
    return {"q": np.rint(x / scale).astype(np.int8), "scale": scale}

def second(x):
    scale = np.abs(x).max(axis=1, keepdims=True) / 127
    return {"q": np.rint(x * (1 / scale)).astype(np.int8), "scale": scale}

## dequantise_int8 | n=[300] | outputs='float32'
def inputs(n, rng):
    return rng.integers(-127, 128, (n, 400)).astype(np.int8), rng.random((n, 1), np.float32)

def first(q, scale):
    return q * scale

def second(q, scale):
    return q.astype(np.float32) * scale

## dropout_seeded | n=[200_000]
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)

def first(x):
    keep = np.random.default_rng(7).random(x.size) < 0.9
    return np.where(keep, x / 0.9, 0)

def second(x):
    keep = np.random.default_rng(7).random(x.size) < 0.9
    return (x * keep * (1 / 0.9)).astype(x.dtype)

## layer_norm_half | n=[512]
def inputs(n, rng):
    return rng.standard_normal((200, n)).astype(np.float16), rng.standard_normal(n).astype(np.float16)

def first(x, weight):
    y = x.astype(np.float32) if x.dtype == np.float16 else x
    y = (y - y.mean(axis=1, keepdims=True)) / np.sqrt(y.var(axis=1, keepdims=True) + 1e-5) * weight
    return y.astype(x.dtype)

def second(x, weight):
    y = x.astype(np.float64)
    mean = y.mean(axis=1, keepdims=True)
    rest = np.sqrt((y * y).mean(axis=1, keepdims=True) - mean**2 + 1e-5)
    return ((y - mean) / rest * weight).astype(x.dtype)

## softmax_half | n=[700]
def inputs(n, rng):
    return (4 * rng.standard_normal((100, n))).astype(np.float16)

def first(x):
    y = np.exp((x - x.max(axis=1, keepdims=True)).astype(np.float64))
    return (y / y.sum(axis=1, keepdims=True)).astype(x.dtype)

def second(x):
    y = x.astype(np.float32)
    y = np.exp(y - y.max(axis=1, keepdims=True))
    return (y / y.sum(axis=1, keepdims=True)).astype(x.dtype)

## layer_norm_welford | n=[1000]
import numba

def inputs(n, rng):
    return rng.standard_normal((300, n), np.float32) + np.float32(3)

def first(x):
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + np.float32(1e-5))

@numba.njit
def second(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        mean, m2 = np.float32(0), np.float32(0)
        for j in range(x.shape[1]):
            delta = x[i, j] - mean
            mean += delta / np.float32(j + 1)
            m2 += delta * (x[i, j] - mean)
        scale = np.float32(1) / np.sqrt(m2 / np.float32(x.shape[1]) + np.float32(1e-5))
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - mean) * scale
    return y

## attention | n=[256]
def inputs(n, rng):
    return tuple(rng.standard_normal((n, 32), np.float32) for _ in range(3))

def first(q, k, v):
    s = q @ k.T / np.sqrt(q.shape[1], dtype=q.dtype)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True) @ v

def second(q, k, v):
    m = np.full((len(q), 1), -np.inf, q.dtype)
    total, y = np.zeros((len(q), 1), q.dtype), np.zeros_like(q)
    for at in range(0, len(k), 64):
        s = q @ k[at : at + 64].T / np.sqrt(q.shape[1], dtype=q.dtype)
        new = np.maximum(m, s.max(axis=1, keepdims=True))
        p, old = np.exp(s - new), np.exp(m - new)
        total, y, m = total * old + p.sum(axis=1, keepdims=True), y * old + p @ v[at : at + 64], new
    return y / total

## causal_attention | n=[200]
def inputs(n, rng):
    return tuple(rng.standard_normal((n, 32), np.float32) for _ in range(3))

def first(q, k, v):
    s = np.where(np.tri(len(q), dtype=bool), q @ k.T, -np.inf)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return (p / p.sum(axis=1, keepdims=True) @ v).astype(q.dtype)

def second(q, k, v):
    y = np.empty_like(q)
    for i in range(len(q)):
        s = k[: i + 1] @ q[i]
        p = np.exp(s - s.max())
        y[i] = p @ v[: i + 1] / p.sum()
    return y

## kmeans_step | n=[5000]
import scipy.spatial.distance

def inputs(n, rng):
    return rng.standard_normal((n, 8), np.float32), rng.standard_normal((16, 8), np.float32)

def first(x, centres):
    label = scipy.spatial.distance.cdist(x, centres).argmin(axis=1)
    return {"label": label, "centres": np.stack([x[label == k].mean(axis=0) for k in range(16)]).astype(x.dtype)}

def second(x, centres):
    label = ((centres**2).sum(axis=1) - 2 * x @ centres.T).argmin(axis=1)
    sums = np.zeros_like(centres)
    np.add.at(sums, label, x)
    return {"label": label, "centres": (sums / np.bincount(label, minlength=16)[:, None]).astype(x.dtype)}

## convolution_three_ways | n=[160]
import scipy.signal

def inputs(n, rng):
    return rng.standard_normal((n, n), np.float32), rng.standard_normal((5, 5), np.float32)

def first(x, k):
    return scipy.signal.convolve2d(x, k, "valid")

def second(x, k):
    return scipy.signal.fftconvolve(x, k, "valid")

def third(x, k):
    windows = np.lib.stride_tricks.sliding_window_view(x, k.shape)
    return (windows.reshape(-1, k.size) @ k[::-1, ::-1].reshape(-1)).reshape(windows.shape[:2])

## torch_gelu | n=[200_000]
import torch

def inputs(n):
    return torch.randn(n)

def first(x):
    return torch.nn.functional.gelu(x)

def second(x):
    return 0.5 * x * (1 + torch.erf(x * 0.7071067811865476))

## torch_bf16_product | n=[128]
import torch

def inputs(n):
    return torch.randn(n, n).bfloat16(), torch.randn(n, n).bfloat16()

def first(a, b):
    return a @ b

def second(a, b):
    return (a.float() @ b.float()).to(a.dtype)

## torch_conv_unfold | n=[32]
import torch

def inputs(n):
    return torch.randn(4, 8, n, n), torch.randn(16, 8, 3, 3)

def first(x, w):
    return torch.nn.functional.conv2d(x, w)

def second(x, w):
    columns = torch.nn.functional.unfold(x, 3)
    return (w.flatten(1) @ columns).view(x.shape[0], 16, x.shape[2] - 2, x.shape[3] - 2)

## torch_sdpa | n=[128]
import torch

def inputs(n):
    return torch.randn(2, 4, n, 32), torch.randn(2, 4, n, 32), torch.randn(2, 4, n, 32)

def first(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) / 32**0.5, -1) @ v

def second(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)

## torch_topk | n=[100_000] | compare={"indices": warpladder.compare.order_of(lambda x: -x)}
import torch

def inputs(n):
    return {"x": torch.randn(n)}

def first(x):
    values, indices = torch.topk(x, 20)
    return {"values": values, "indices": indices}

def second(x):
    values, indices = torch.sort(x, descending=True)
    return {"values": values[:20].clone(), "indices": indices[:20].clone()}

## torch_scatter | n=[50_000]
import torch

def inputs(n):
    return torch.randn(n), torch.randint(0, 300, (n,))

def first(x, index):
    return torch.zeros(300, dtype=x.dtype).scatter_add_(0, index, x)

def second(x, index):
    return torch.zeros(300, dtype=x.dtype).index_add_(0, index, x)

## log_sum_exp_number | n=[100_000]
import math

def inputs(n, rng):
    return rng.standard_normal(n)

def first(x):
    top = x.max()
    return math.log(np.exp(x - top).sum()) + float(top)

def second(x):
    return np.logaddexp.reduce(x)
""")
