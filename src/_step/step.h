/* One decision and one update of a linear bandit, as plain C: what `dither._step` is made of.

   The Python path is the definition. Where the answer may hang on rounding these functions say NOT_MINE, and Python
   decides from the same numbers. No file here but module.c and buffers.c knows Python.

   Every sum is taken in an order that the source fixes, in LANES parts that end in one tree, and no multiplication is
   joined with an addition (-ffp-contract=off). So the answers are the same bits whatever the width of the vectors that
   a compiler takes. */

#ifndef DITHER_STEP_H
#define DITHER_STEP_H

#include <stddef.h>

/* The version of these sources: a larger one whenever Python must ask otherwise. `dither/base/compiled.py` takes no other
   than its own. */
#define STEP_VERSION 2

/* The version of the arithmetic: a larger one whenever any number may round otherwise than before. Ledgers keep it with
   what was learnt. */
#define STEP_ARITHMETIC 1

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
/* The loader picks the loops for the processor at hand. */
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

enum { LANES = 8 };
enum { NOT_MINE = 0, MINE = 1 };

static const double UNIT = 2.220446049250313e-16; /* twice the rounding of one operation */

/* Which score an arm has: its line at the z that was drawn, its line at z = 1, or its mean. */
enum score { DRAWN = 0, OPTIMISTIC = 1, MEAN = 2 };

/* What means and widths are made of: m = x'theta, w = |F'x|, for one theta and one F, or for one of each slot. */
struct model {
    size_t d;
    const double *theta; /* (d), slots: (K, d) */
    const double *F;     /* (d, d), slots: (K, d, d) */
    double rho;   /* the largest error of m, in widths */
    double omega; /* the largest relative error of w */
    int turned;   /* whether F is in Fortran's order */
    int slots;    /* whether each arm has a theta and an F of its own */
    int measured; /* whether widths are in units of rewards: `models/units.py` */
    double lam, noise, prior; /* of those: lambda, sigma^2, lambda tau^2 */
};

/* The arms on offer of one request. All arrays (n). */
struct lines {
    size_t n;
    size_t *place;  /* which arm */
    double *m;      /* height at z = 0 */
    double *w;      /* slope: the width times the scale */
    double *raw;    /* what errors of m go by */
    double rho;     /* the largest error of m, in raw */
    double omega;   /* the largest relative error of w */
};

struct choice {
    size_t arm;       /* place among the arms on offer */
    double low, high; /* between which z it is shown */
};

/* What the lanes of a sum come to. */
static inline double tree(const double *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* products.c */
double inner(const double *a, const double *b, size_t n);
double largest(const double *a, size_t n);

/* lengths.c */
size_t padded(size_t d); /* d, rounded up to whole lanes; scratch is d * padded(d) + n * LANES numbers */
/* |F'x|^2 of the rows place[i] of X, for one F. */
void lengths(const double *X, size_t n, const size_t *place, const struct model *model, double *scratch, double *out);
/* |F'x|^2 of one row x, for the place[i]-th of many F. */
void length_of_each(const double *x, size_t n, const size_t *place, const struct model *model, double *scratch,
                    double *out);

/* lines.c */
int make_lines(const double *X, const struct model *model, double by, enum score score, double *scratch,
               struct lines *lines);
size_t lines_scratch(size_t n, const struct model *model);

/* rounding.c */
void lost(struct model *model, const double *lost, size_t n);
void found(struct model *model, const double *sums, size_t n);

/* choose.c */
int decide(const struct lines *lines, double z, double *scratch, struct choice *choice);
int highest(const struct lines *lines, double *scratch, struct choice *choice);
int alone(const struct lines *lines, size_t arm, struct choice *choice);

/* law.c */
double normal_mass(double low, double high);

/* update.c */
struct learnt {
    double *F, *theta, *lost, *sums; /* what is written; sums NULL: none are kept */
    double s;
};
int learn(size_t d, const double *F, const double *theta, const double *lost, const double *sums, const double *x,
          double r, double weight, double *scratch, struct learnt *learnt);

#endif
