/* What the sums of a model say: how far rounding has gone (`LinearModel.rounding`), and the units of rewards
   (`units._scales` about a centre of 0). */

#include "step.h"

#include <math.h>

static const double LOST = 8 * 2.220446049250313e-16;
static const double MOST = 1e-6; /* of omega: an update that loses more is refused */
static const double LEFT = 4e-15; /* of a sum of squares, below which what is left of it is rounding */

/* The largest errors among n bandits or slots, lost (n, 5 + 4 d) as models/digits.py has it; they are added. */
void lost(struct model *model, const double *lost, size_t n)
{
    double rho = 0, omega = 0;
    for (size_t i = 0; i < n; i++) {
        const double *of = lost + i * (5 + 4 * model->d); /* D^2, what is not yet in it, q^2, what is not yet in it */
        double of_means = LOST * sqrt(of[2] + of[3]), of_widths = LOST * sqrt(of[0] + of[1]);
        if (!(of_means <= rho))
            rho = of_means;
        if (!(of_widths <= omega))
            omega = of_widths;
    }
    model->rho += rho;
    model->omega += omega < MOST ? omega : MOST;
}

/* sigma^2 and lambda tau^2 of what n slots have learnt together, sums (n, 7) as models/units.py has them. */
void found(struct model *model, const double *sums, size_t n)
{
    double count = 0, size = 0, square = 0, rest = 0;
    for (size_t i = 0; i < n; i++) {
        count += sums[7 * i];
        size += sums[7 * i + 1];
        square += sums[7 * i + 2];
        rest += sums[7 * i + 4];
    }
    if (!(count > 0)) {
        model->noise = model->prior = model->lam;
        return;
    }
    double per = square > 0 ? square / count : 0;
    if (!(rest > LEFT * square))
        rest = 0;
    model->noise = (per + rest) / (1 + count);
    model->prior = model->lam * (per / (size > 0 ? size / count : 1));
}
