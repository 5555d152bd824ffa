"""Pairs of right functions for `compare_functions`. A pair: its text, and the text of the arguments."""

RIGHT = {
    "searchsorted": (
        "def first(a, v):\n    return np.searchsorted(a, v)\n\ndef second(a, v):\n    return np.array([np.count_nonzero(a < x) for x in v])\n",
        "(np.sort(np.random.default_rng(1).random(500)), np.random.default_rng(2).random(300))",
    ),
    "eigvalsh": (
        "import scipy.linalg\n\ndef first(a):\n    return np.linalg.eigvalsh(a)\n\ndef second(a):\n    return scipy.linalg.eigvalsh(a)\n",
        "(lambda a: a + a.T)(np.random.default_rng(1).standard_normal((60, 60)))",
    ),
    "entropy": (
        "import scipy.special\n\ndef first(p):\n    return -(p * np.log(p)).sum()\n\ndef second(p):\n    return scipy.special.entr(p).sum()\n",
        "np.random.default_rng(1).dirichlet(np.ones(1000))",
    ),
    "kl_of_probabilities": (
        "import scipy.stats\n\ndef first(p, q):\n    return (p * np.log(p / q)).sum()\n\ndef second(p, q):\n    return scipy.stats.entropy(p, q)\n",
        "tuple(np.random.default_rng(1).dirichlet(np.ones(1000), 2))",
    ),
    "markov": (
        "def first(p, m):\n    for _ in range(20):\n        p = p @ m\n    return p / p.sum()\n\ndef second(p, m):\n    p = p @ np.linalg.matrix_power(m, 20)\n    return p / p.sum()\n",
        "(np.full(30, 1 / 30), np.random.default_rng(1).dirichlet(np.ones(30), 30))",
    ),
    "rotate": (
        "def first(r, x):\n    return x @ r.T\n\ndef second(r, x):\n    return np.linalg.solve(r.T, x.T).T if not np.allclose(r @ r.T, np.eye(3)) and False else x @ np.linalg.inv(r)\n",
        "(np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0], np.random.default_rng(2).standard_normal((1000, 3)))",
    ),
    "toeplitz": (
        "import scipy.linalg\n\ndef first(c, b):\n    return np.linalg.solve(scipy.linalg.toeplitz(c), b)\n\ndef second(c, b):\n    return scipy.linalg.solve_toeplitz(c, b)\n",
        "(0.5 ** np.arange(60), np.random.default_rng(1).standard_normal(60))",
    ),
    "merge_sorted": (
        "def first(a, b):\n    return np.sort(np.concatenate([a, b]))\n\ndef second(a, b):\n    y = np.empty(a.size + b.size)\n    y[np.arange(a.size) + np.searchsorted(b, a, 'left')] = a\n    y[np.arange(b.size) + np.searchsorted(a, b, 'right')] = b\n    return y\n",
        "tuple(np.sort(np.random.default_rng(1).random((2, 2000)), axis=1))",
    ),
    "complex_power": (
        "def first(z):\n    return np.abs(z) ** 2\n\ndef second(z):\n    return (z * z.conj()).real\n",
        "np.exp(1j * np.random.default_rng(1).random(5000)) * 3",
    ),
    "rankdata": (
        "import scipy.stats\n\ndef first(x):\n    return scipy.stats.rankdata(x)\n\ndef second(x):\n    s = np.sort(x)\n    return (np.searchsorted(s, x, 'left') + np.searchsorted(s, x, 'right') + 1) / 2\n",
        "np.random.default_rng(1).integers(0, 50, 2000).astype(float)",
    ),
    "pair_distances": (
        "from scipy.spatial.distance import pdist, cdist\n\ndef first(x):\n    return pdist(x)\n\ndef second(x):\n    return cdist(x, x)[np.triu_indices(len(x), 1)]\n",
        "np.random.default_rng(1).standard_normal((100, 5))",
    ),
    "logdet": (
        "def first(a):\n    return np.linalg.slogdet(a)[1]\n\ndef second(a):\n    return 2 * np.log(np.diag(np.linalg.cholesky(a))).sum()\n",
        "(lambda a: a @ a.T + np.eye(50))(np.random.default_rng(1).standard_normal((50, 50)))",
    ),
    "in_place": (
        "def first(x):\n    x.sort()\n\ndef second(x):\n    x[:] = np.sort(x, kind='stable')\n",
        "np.random.default_rng(1).random(20_000)",
    ),
    "tiny": ("def first(x):\n    return x + 1.0\n\ndef second(x):\n    return 1.0 + x\n", "0.5"),
    "torch_pair": (
        "import torch\n\ndef first(x):\n    return torch.softmax(x, 1)\n\ndef second(x):\n    return torch.exp(torch.log_softmax(x, 1))\n",
        "__import__('torch').randn(64, 300)",
    ),
    "list_argument": (
        "def first(x):\n    return sum(x)\n\ndef second(x):\n    total = 0\n    for value in x:\n        total += value\n    return total\n",
        "([1, 2, 3, 4] * 100,)",
    ),
    "no_arguments": (
        "x = np.random.default_rng(1).random(5000)\n\ndef first():\n    return np.sort(x)\n\ndef second():\n    return np.sort(x, kind='stable')\n",
        "",
    ),
    "circulant": (
        "import scipy.linalg\n\ndef first(c, x):\n    return scipy.linalg.circulant(c) @ x\n\ndef second(c, x):\n    return np.fft.ifft(np.fft.fft(c) * np.fft.fft(x)).real\n",
        "tuple(np.random.default_rng(1).standard_normal((2, 200)))",
    ),
    "integer_values": (
        "def first(x):\n    return np.bincount(x, minlength=64)\n\ndef second(x):\n    return np.histogram(x, np.arange(65))[0]\n",
        "np.random.default_rng(1).integers(0, 64, 50_000)",
    ),
    "half_values": (
        "def first(x):\n    return (x.astype(np.float32) * 2 + 1).astype(np.float16)\n\ndef second(x):\n    return x * np.float16(2) + np.float16(1)\n",
        "np.random.default_rng(1).random(5000).astype(np.float16)",
    ),
}
