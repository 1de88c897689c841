/* One more observation of ridge regression: `Recursion.update` of models/ridge.py, with `factor.grown`, the bounds of
   rounding of `digits._quickly`, and the sums of `units.counted`.

   p = F'x,  u = F p,  s = 1 + p'p,  F <- F - u p'/(s + sqrt s),  theta <- theta + u e/s,  e = r - x'theta */

#include "step.h"

#include <math.h>
#include <string.h>

static const double LONG = 1e3;  /* s above which F is checked, because it may lose digits */
static const double WRONG = 1e-6; /* error of w^2 above which Python refuses the update */

enum { SCALARS = 5, EACH = 64 };

/* p = F'x, and back: every column is summed in the order of the rows. */
WIDE static void down(const double *restrict F, const double *restrict x, size_t d, double *restrict p)
{
    memset(p, 0, d * sizeof(double));
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++)
            p[j] += x[i] * F[i * d + j];
}

/* The root of a^2 + b^2 for a, b >= 0. That of libm is rounded otherwise by each of its versions. */
static double hypotenuse(double a, double b)
{
    double most = a > b ? a : b, share = (a > b ? b : a) / most;
    return most > 0 && share == share ? most * sqrt(1 + share * share) : most;
}

/* F - u p'/(s + sqrt s). */
WIDE static void subtract(const double *restrict F, const double *restrict u, const double *restrict p, size_t d,
                          double scale, double *restrict out)
{
    for (size_t i = 0; i < d; i++) {
        double share = u[i] / scale;
        for (size_t j = 0; j < d; j++)
            out[i * d + j] = share * p[j] + F[i * d + j];
    }
}

/* What rounding has done by now, as models/digits.py says: the letters are its. */
static void lose(size_t d, const double *before, const double *x, double s, double e, double r, const double *F,
                 const double *theta, double *lost)
{
    memcpy(lost, before, (SCALARS + 4 * d) * sizeof(double));
    double *v = lost + SCALARS, *c = v + d, *A = c + d, *B = A + d, kappa, far = 0;
    for (size_t i = 0; i < d; i++)
        v[i] += x[i] * x[i];
    kappa = inner(v, c, d);
    for (size_t i = 0; i < d; i++) {
        c[i] = inner(F + i * d, F + i * d, d);
        far += v[i] * theta[i] * theta[i];
    }
    double D = lost[0], P = lost[1] + kappa, q = lost[2], Q = lost[3], n = lost[4] + 1;
    Q += (D + P) * e * e * (1 - 1 / s) + r * r + far;
    if (fmod(n, EACH) == 0 || fmod(EACH, n) == 0) {
        double some = 0, other = 0;
        for (size_t i = 0; i < d; i++) {
            some += sqrt(c[i] * A[i]);
            other += sqrt(c[i]) * B[i];
        }
        some *= some;
        some *= some;
        other *= other;
        D = (some < D ? some : D) + P;
        q = (other < q ? other : q) + Q;
        for (size_t i = 0; i < d; i++) {
            A[i] = hypotenuse(A[i], v[i] * sqrt(P));
            B[i] = hypotenuse(B[i], sqrt(v[i]) * sqrt(Q));
        }
        P = Q = 0;
    }
    lost[0] = D;
    lost[1] = P;
    lost[2] = q;
    lost[3] = Q;
    lost[4] = n;
}

/* scratch is 3 d numbers. NOT_MINE: what was written is not to be used. */
int learn(size_t d, const double *F, const double *theta, const double *lost, const double *sums, const double *x,
          double r, double weight, double *scratch, struct learnt *learnt)
{
    double *p = scratch, *u = scratch + d, *back = scratch + 2 * d;
    down(F, x, d, p);
    for (size_t i = 0; i < d; i++)
        u[i] = inner(F + i * d, p, d);
    double s = 1 + inner(p, p, d), e = r - inner(x, theta, d), step = e / s;
    if (!(s < HUGE_VAL) || !(fabs(step) < HUGE_VAL))
        return NOT_MINE;
    subtract(F, u, p, d, -(s + sqrt(s)), learnt->F);
    if (s > LONG) { /* the width of x shows what F can hold: it must be sqrt((s - 1)/s) */
        down(learnt->F, x, d, back);
        if (!(fabs(inner(back, back, d) - (1 - 1 / s)) <= WRONG / 2))
            return NOT_MINE;
    }
    for (size_t i = 0; i < d; i++)
        learnt->theta[i] = theta[i] + u[i] * step;
    lose(d, lost, x, s, e, r, learnt->F, learnt->theta, learnt->lost);
    if (learnt->sums) {
        memcpy(learnt->sums, sums, 7 * sizeof(double));
        learnt->sums[0] += weight;
        learnt->sums[1] += inner(x, x, d);
        learnt->sums[2] += r * r;
        learnt->sums[4] += e * e / s;
    }
    learnt->s = s;
    return MINE;
}
