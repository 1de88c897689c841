/* |F'x|^2 of many rows, which is nearly all that a decision among many arms takes. */

#include "step.h"

#include <string.h>

enum { ROWS = 4 };
enum { NEAR = 4096 }; /* numbers of F that stay near the processor while many rows pass */
enum { MANY = 64 };   /* rows for which a copy of F costs little beside them */

#if defined(__GNUC__)
#define NARROW 16
#else
#define NARROW 8
#endif

#define NAME four_narrow
#define FOR
#define COUNT ROWS
#define BYTES NARROW
#include "rows.h"

#define NAME one_narrow
#define FOR
#define COUNT 1
#define BYTES NARROW
#include "rows.h"

#if defined(__GNUC__) && defined(__x86_64__)
#define NAME four_wide
#define FOR __attribute__((target("avx2")))
#define COUNT ROWS
#define BYTES 32
#include "rows.h"

#define NAME one_wide
#define FOR __attribute__((target("avx2")))
#define COUNT 1
#define BYTES 32
#include "rows.h"
#endif

typedef void (*rows)(const double *const *, const double *, size_t, size_t, size_t, double *);

/* The loops for the processor at hand. */
static void loops(rows *four, rows *one)
{
    *four = four_narrow;
    *one = one_narrow;
#if defined(__GNUC__) && defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        *four = four_wide;
        *one = one_wide;
    }
#endif
}

size_t padded(size_t d)
{
    return (d + LANES - 1) / LANES * LANES;
}

/* Some columns of F (d, d) in C order, from the j-th on: (d, columns), with zeros behind the last one. */
static void copied(const double *F, size_t d, int turned, size_t j, size_t columns, double *out)
{
    size_t kept = d - j < columns ? d - j : columns;
    for (size_t k = 0; k < d; k++) {
        double *row = out + k * columns;
        if (turned)
            for (size_t c = 0; c < kept; c++)
                row[c] = F[(j + c) * d + k];
        else
            memcpy(row, F + k * d + j, kept * sizeof(double));
        memset(row + kept, 0, (columns - kept) * sizeof(double));
    }
}

void lengths(const double *X, size_t n, const size_t *place, const struct model *model, double *scratch, double *out)
{
    rows four, one;
    size_t d = model->d, all = padded(d), most = NEAR / d / LANES * LANES;
    double *sums = scratch, *near = scratch + n * LANES;
    loops(&four, &one);
    memset(sums, 0, n * LANES * sizeof(double));
    if (most < LANES)
        most = LANES;
    for (size_t j = 0; j < all; j += most) {
        size_t i = 0, columns = all - j < most ? all - j : most;
        const double *F = model->F + j;
        int copy = n >= MANY ? columns != d : all != d;
        if (copy || model->turned) {
            copied(model->F, d, model->turned, j, columns, near);
            F = near;
        }
        size_t stride = F == near ? columns : d;
        for (; i + ROWS <= n; i += ROWS) {
            const double *x[ROWS] = {X + place[i] * d, X + place[i + 1] * d, X + place[i + 2] * d, X + place[i + 3] * d};
            four(x, F, d, stride, columns, sums + i * LANES);
        }
        for (; i < n; i++) {
            const double *x = X + place[i] * d;
            one(&x, F, d, stride, columns, sums + i * LANES);
        }
    }
    for (size_t i = 0; i < n; i++)
        out[i] = tree(sums + i * LANES);
}

void length_of_each(const double *x, size_t n, const size_t *place, const struct model *model, double *scratch,
                    double *out)
{
    rows four, one;
    size_t d = model->d, columns = padded(d);
    loops(&four, &one);
    for (size_t i = 0; i < n; i++) {
        const double *F = model->F + place[i] * d * d;
        double sums[LANES] = {0};
        if (columns != d || model->turned) {
            copied(F, d, model->turned, 0, columns, scratch);
            F = scratch;
        }
        one(&x, F, d, columns, columns, sums);
        out[i] = tree(sums);
    }
}
