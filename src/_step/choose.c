/* Choice and interval of one request: `decide` and `alone` of propensity/coupled.py, `Scores.decide` of views.py.

   All margins of Python are taken twice. Means and widths of the two roads differ by rounding, which the margins bound,
   so where twice the margins hold Python shows the same arm. */

#include "step.h"

#include <math.h>

static const double APART = 1e6;  /* widths at a corner nearer than so many errors are compared with all others */
static const double CLEAR = 1e-6; /* a corner is good to 1e-9 where the two widths differ by this share of a width */
static const double TWICE = 2.0;

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The relative difference that widths must have. */
static double least_share(const struct lines *lines)
{
    return TWICE * larger(4 * (double)lines->n * lines->omega, CLEAR);
}

/* Whether all other widths are far from that of an arm: none is joined with it, and none blurs a corner. */
WIDE static int apart(const struct lines *lines, size_t arm)
{
    double w = lines->w[arm], least = least_share(lines) * w;
    size_t near = 0;
    for (size_t i = 0; i < lines->n; i++)
        near += !(fabs(lines->w[i] - w) > least);
    return near == 1;
}

/* The first arm of the highest score; NaN among the scores: the place of one. */
static size_t first(const double *s, size_t n)
{
    size_t arm = 0;
    for (size_t i = 1; i < n; i++)
        if (!(s[i] <= s[arm]))
            arm = i;
    return arm;
}

/* The arm that is highest at z, and its interval. It leads j by gap, and j gains on it by the difference of widths for
   each unit of z: the quickest line on either side ends its interval. */
WIDE int decide(const struct lines *lines, double z, double *scratch, struct choice *choice)
{
    size_t n = lines->n;
    const double *m = lines->m, *w = lines->w;
    double *s = scratch;
    for (size_t i = 0; i < n; i++)
        s[i] = m[i] + z * w[i];
    size_t arm = first(s, n), slow = arm, fast = arm;
    double size = fabs(z), wide = largest(w, n), tall = largest(m, n);
    double raw = lines->raw == w ? wide : largest(lines->raw, n);
    double moved = lines->rho * raw + size * lines->omega * wide;
    double reach = 4 * (double)n * moved + 8 * UNIT * (tall + size * wide);
    double own = w[arm], top = s[arm], least = least_share(lines) * own;
    double slowest = 0, fastest = 0;
    if (!(reach < HUGE_VAL) || !(least >= 0))
        return NOT_MINE;
    size_t near = 0;
    double *pace = scratch + n;
    for (size_t i = 0; i < n; i++) {
        double gap = top - s[i], gain = w[i] - own;
        near += !(gap > TWICE * reach) | !(fabs(gain) > least);
        pace[i] = gain / gap;
    }
    if (near != 1) /* the arm itself, and no other */
        return NOT_MINE;
    pace[arm] = 0;
    for (size_t i = 0; i < n; i++) {
        if (pace[i] < slowest) {
            slowest = pace[i];
            slow = i;
        }
        if (pace[i] > fastest) {
            fastest = pace[i];
            fast = i;
        }
    }
    /* The corners are computed from m and w themselves, because s is rounded and has lost some of their digits. */
    double slower = w[slow] - own, faster = w[fast] - own;
    double close = TWICE * larger(APART * reach / ((double)n * (1 + size)), CLEAR * own);
    if ((slow != arm && -slower < close && !apart(lines, slow)) || (fast != arm && faster < close && !apart(lines, fast)))
        return NOT_MINE;
    choice->arm = arm;
    choice->low = slow == arm ? -HUGE_VAL : (m[arm] - m[slow]) / slower;
    choice->high = fast == arm ? HUGE_VAL : (m[arm] - m[fast]) / faster;
    return choice->low < z && z < choice->high ? MINE : NOT_MINE;
}

/* The interval of an arm that was shown whatever z is; it may be empty, low >= high. */
int alone(const struct lines *lines, size_t arm, struct choice *choice)
{
    const double *m = lines->m, *w = lines->w;
    size_t below = arm, above = arm;
    if (!apart(lines, arm))
        return NOT_MINE;
    choice->arm = arm;
    choice->low = -HUGE_VAL;
    choice->high = HUGE_VAL;
    for (size_t i = 0; i < lines->n; i++) {
        double rise = m[arm] - m[i], steeper = w[i] - w[arm], z = rise / steeper;
        if (i == arm)
            continue;
        if (!(fabs(z) < HUGE_VAL))
            return NOT_MINE;
        if (steeper < 0 && z > choice->low) {
            choice->low = z;
            below = i;
        }
        if (steeper > 0 && z < choice->high) {
            choice->high = z;
            above = i;
        }
    }
    if ((below != arm && !apart(lines, below)) || (above != arm && !apart(lines, above)))
        return NOT_MINE;
    return MINE;
}

/* The arm of the highest m + w, which is certain where no score is near. */
int highest(const struct lines *lines, double *scratch, struct choice *choice)
{
    size_t n = lines->n;
    const double *m = lines->m, *w = lines->w;
    double *s = scratch;
    for (size_t i = 0; i < n; i++)
        s[i] = m[i] + w[i];
    size_t arm = first(s, n);
    double wide = largest(w, n), tall = largest(m, n), raw = lines->raw == w ? wide : largest(lines->raw, n);
    double most = lines->rho * raw + lines->omega * wide + 2 * UNIT * (tall + wide), least = s[arm] - TWICE * 2 * most;
    size_t near = 0;
    for (size_t i = 0; i < n; i++)
        near += !(s[i] < least);
    if (near != 1)
        return NOT_MINE;
    choice->arm = arm;
    choice->low = -HUGE_VAL;
    choice->high = HUGE_VAL;
    return MINE;
}
