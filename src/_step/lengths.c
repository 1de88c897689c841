/* |F'x|^2 of many rows, which is nearly all that a decision among many arms takes. */

#include "step.h"

#include <string.h>

enum { ROWS = 4 };

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

typedef void (*rows)(const double *const *, const double *, size_t, size_t, double *);

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

/* F in C order with zeros behind its columns; F itself where it is that. */
static const double *filled(const double *F, size_t d, int turned, double *scratch)
{
    size_t columns = padded(d);
    if (columns == d && !turned)
        return F;
    for (size_t k = 0; k < d; k++) {
        double *row = scratch + k * columns;
        if (turned)
            for (size_t j = 0; j < d; j++)
                row[j] = F[j * d + k];
        else
            memcpy(row, F + k * d, d * sizeof(double));
        memset(row + d, 0, (columns - d) * sizeof(double));
    }
    return scratch;
}

void lengths(const double *X, size_t n, const size_t *place, const struct model *model, double *scratch, double *out)
{
    rows four, one;
    size_t i = 0, d = model->d, columns = padded(d);
    const double *F = filled(model->F, d, model->turned, scratch);
    loops(&four, &one);
    for (; i + ROWS <= n; i += ROWS) {
        const double *x[ROWS] = {X + place[i] * d, X + place[i + 1] * d, X + place[i + 2] * d, X + place[i + 3] * d};
        four(x, F, d, columns, out + i);
    }
    for (; i < n; i++) {
        const double *x = X + place[i] * d;
        one(&x, F, d, columns, out + i);
    }
}

void length_of_each(const double *x, size_t n, const size_t *place, const struct model *model, double *scratch,
                    double *out)
{
    rows four, one;
    size_t d = model->d;
    loops(&four, &one);
    for (size_t i = 0; i < n; i++)
        one(&x, filled(model->F + place[i] * d * d, d, model->turned, scratch), d, padded(d), out + i);
}
