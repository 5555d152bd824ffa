// Idea: compares outputs with references in one launch, whatever their types: CuPy's functions would be a dozen kernels, compiled for each type.
// Bottleneck: none of this is timed.
// Next: nothing.
// Source: ours.

constexpr int kLanes = 32;

__device__ double added(double value) {
    for (int step = kLanes / 2; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
    return value;
}

// The bits of numbers that are not negative are in the order of the numbers; NaN is the largest.
__device__ void keep_largest(unsigned long long* largest, double value) { atomicMax(largest, (unsigned long long)__double_as_longlong(value)); }

__device__ bool is_finite(double value) { return value - value == 0.0; }

// Elements of `actual` and `right`, of PARTS numbers each, by tiles of TILE. All numbers count multiplied by `scale`. Numbers from `infinite`
// on round to infinity in the type of the output, which may be narrower than T.
// `error_squared`, `right_squared`: sums of squares of |actual - right| and |right|, of each tile.
// `largest`: the maxima of both, as bits of a double.
// `counts`: elements that differ from `right`; those of them that are alike nevertheless, since `actual` can hold `right` as infinity or
// NaN only; that are off by more than `lost_at` of `right`; that are not finite, where `right` is; that are not alike, where `right` is not.
template <class T, class R, int PARTS, int TILE>
__global__ void errors(const T* actual, const R* right, unsigned long long count, double infinite, double scale, double lost_at,
                       double* error_squared, double* right_squared, unsigned long long* largest, unsigned long long* counts) {
    __shared__ double sums[2][kLanes];
    const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
    double max_error = 0.0, max_size = 0.0, nan = 0.0;
    unsigned different = 0, alike = 0, lost = 0, not_finite = 0, finite = 0;
    for (unsigned long long tile = blockIdx.x; tile * TILE < count; tile += gridDim.x) {
        const unsigned long long end = count - tile * TILE < TILE ? count : (tile + 1) * TILE;
        double of_error = 0.0, of_size = 0.0;
        for (unsigned long long i = tile * TILE + threadIdx.x; i < end; i += blockDim.x) {
            double off[PARTS], size[PARTS];
            bool is_equal = true, is_same = true, can_be_held = true, is_number = true, is_nan = false, should_be_nan = false;
            for (int part = 0; part < PARTS; ++part) {
                const T own = actual[i * PARTS + part];
                const R wanted = right[i * PARTS + part];
                const double wide = (double)wanted;
                const T rounded = fabs(wide) < infinite || wide != wide ? (T)wanted : (T)copysign(1.0 / 0.0, wide);
                off[part] = (double)own * scale - wide * scale;
                size[part] = wide * scale;
                is_equal &= own == wanted;
                is_same &= own == rounded;
                can_be_held &= is_finite((double)rounded);
                is_number &= is_finite((double)own);
                is_nan |= own != own;
                should_be_nan |= rounded != rounded;
            }
            double error = PARTS == 1 ? fabs(off[0]) : hypot(off[0], off[PARTS - 1]);
            double expected = PARTS == 1 ? fabs(size[0]) : hypot(size[0], size[PARTS - 1]);
            const bool is_alike = !can_be_held && (is_same || (is_nan && should_be_nan));
            different += !is_equal;
            alike += is_alike && !is_equal;
            not_finite += can_be_held && !is_number;
            finite += !can_be_held && !is_alike;
            if (!can_be_held) error = expected = 0.0;
            lost += error > lost_at * expected;
            if (error != error) nan = error;
            max_error = fmax(max_error, error);
            max_size = fmax(max_size, expected);
            of_error += error * error;
            of_size += expected * expected;
        }
        of_error = added(of_error), of_size = added(of_size);
        if (lane == 0) sums[0][warp] = of_error, sums[1][warp] = of_size;
        __syncthreads();
        if (warp == 0) {
            const bool has_warp = lane * kLanes < blockDim.x;
            of_error = added(has_warp ? sums[0][lane] : 0.0), of_size = added(has_warp ? sums[1][lane] : 0.0);
            if (lane == 0) error_squared[tile] = of_error, right_squared[tile] = of_size;
        }
        __syncthreads();
    }
    keep_largest(largest, nan == nan ? max_error : fabs(nan));
    keep_largest(largest + 1, max_size);
    const unsigned found[] = {different, alike, lost, not_finite, finite};
    for (int kind = 0; kind < 5; ++kind) {
        if (found[kind]) atomicAdd(counts + kind, (unsigned long long)found[kind]);
    }
}
