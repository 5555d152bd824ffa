// The operands of D = A B + beta C. D is column-major without gaps; the others have strides, so that a transposed matrix is one whose
// strides are exchanged, and a bias, added to every column, is a C whose columns are 0 apart.
struct Product {
  const float* a;
  const float* b;
  const float* c;
  float* d;
  int m, n, k;
  int a_row, a_column, b_row, b_column, c_column;
  float beta;

  __device__ float a_at(int i, int p) const { return a[(size_t)i * a_row + (size_t)p * a_column]; }
  __device__ float b_at(int p, int j) const { return b[(size_t)p * b_row + (size_t)j * b_column]; }
  __device__ void store(int i, int j, float sum) const {
    if (beta != 0.0f) sum = fmaf(beta, c[i + (size_t)j * c_column], sum);
    d[i + (size_t)j * m] = sum;
  }
};

#define PRODUCT_PARAMETERS                                                                                                        \
  const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ c, float *__restrict__ d, int m, int n,     \
      int k, int a_row, int a_column, int b_row, int b_column, int c_column, float beta
#define PRODUCT_ARGUMENTS a, b, c, d, m, n, k, a_row, a_column, b_row, b_column, c_column, beta
