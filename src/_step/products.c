/* Sums of products, each in an order that does not depend on the width of vectors (step.h). */

#include "step.h"

#include <math.h>

/* a'b. */
WIDE double inner(const double *a, const double *b, size_t n)
{
    double lane[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t c = 0; c < LANES; c++)
            lane[c] += a[i + c] * b[i + c];
    for (size_t c = 0; i + c < n; c++)
        lane[c] += a[i + c] * b[i + c];
    return tree(lane);
}

/* At least the largest |a|: its Euclidean length where that neither overflows nor underflows, as `settled._size`. */
double largest(const double *a, size_t n)
{
    double square = inner(a, a, n), most = 0.0;
    if (square > 1e-280 && square < HUGE_VAL)
        return sqrt(square);
    for (size_t i = 0; i < n; i++)
        if (!(fabs(a[i]) <= most))
            most = fabs(a[i]); /* NaN stays */
    return most;
}
