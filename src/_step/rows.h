/* A template that lengths.c reads once for each kind of loop: |F'x|^2 of COUNT rows at once.

   NAME   of the function
   FOR    what its processor must have, an attribute
   COUNT  rows; a row is summed as it is alone, whatever is beside it
   BYTES  of a vector: 8, one number, where the compiler has none. Lane c is column c of each LANES, so the sums are the
          same for all widths */

#define WIDTH (BYTES / sizeof(double))
#define PARTS (LANES / WIDTH)
#if BYTES > 8
#define VECTOR __attribute__((vector_size(BYTES), aligned(8), may_alias))
#else
#define VECTOR
#endif

FOR static void NAME(const double *const x[COUNT], const double *F, size_t d, size_t columns, double *out)
{
    typedef double vector VECTOR;
    vector square[COUNT][PARTS];
    for (size_t r = 0; r < COUNT; r++)
        for (size_t c = 0; c < PARTS; c++)
            square[r][c] = (vector){0};
    for (size_t j = 0; j < columns; j += LANES) {
        vector p[COUNT][PARTS];
        for (size_t r = 0; r < COUNT; r++)
            for (size_t c = 0; c < PARTS; c++)
                p[r][c] = (vector){0};
        for (size_t k = 0; k < d; k++) {
            const vector *f = (const vector *)(F + k * columns + j);
            for (size_t r = 0; r < COUNT; r++)
                for (size_t c = 0; c < PARTS; c++)
                    p[r][c] += x[r][k] * f[c];
        }
        for (size_t r = 0; r < COUNT; r++)
            for (size_t c = 0; c < PARTS; c++)
                square[r][c] += p[r][c] * p[r][c];
    }
    for (size_t r = 0; r < COUNT; r++) {
        double lane[LANES];
        memcpy(lane, square[r], sizeof lane);
        out[r] = tree(lane);
    }
}

#undef NAME
#undef FOR
#undef COUNT
#undef BYTES
#undef WIDTH
#undef PARTS
#undef VECTOR
