/* The lines m + z w of the arms on offer: `views.lines`, with the widths of `models/units.py` where they are asked for.

   Errors of m and w are told as two numbers, the largest of each, because margins go by these alone. */

#include "step.h"

#include <math.h>

static const double TINY = 1e-300; /* is added to |x|^2, which something is divided by */
static const double FAR = 1e3;     /* sigma^2 over lambda tau^2 above which the rounding of each width is told alone */

size_t lines_scratch(size_t n, const struct model *model)
{
    return n + model->d * padded(model->d);
}

/* w = sqrt(A (noise + lam (prior - noise) A/|x|^2)), and what its errors go by. A = raw^2 is replaced by raw. */
static int measure(const struct model *model, const double *size, struct lines *lines)
{
    double noise = model->noise, prior = model->prior, lam = model->lam, share = 1.0;
    if (noise > 0 && noise <= FAR * prior) {
        double factor = lam * (prior - noise);
        for (size_t i = 0; i < lines->n; i++) {
            double A = lines->raw[i];
            double w = A / (size[i] + TINY) * factor;
            w += noise;
            w *= A;
            if (!(w >= 0))
                return NOT_MINE;
            lines->w[i] = lines->raw[i] = sqrt(w);
        }
        share += noise / prior > 1.0 ? noise / prior : 1.0;
        lines->rho *= 1 / sqrt(noise < prior ? noise : prior);
    } else {
        double low = noise < prior ? noise : prior, most = 1.0;
        for (size_t i = 0; i < lines->n; i++) {
            double A = lines->raw[i];
            double slope = noise + lam * (prior - noise) * (A / (size[i] + TINY));
            if (slope < low)
                slope = low; /* rounding may take more of the noise than there is */
            if (slope > 0 && noise > slope && noise / slope > most)
                most = noise / slope;
            lines->w[i] = sqrt(slope * A);
            lines->raw[i] = sqrt(A);
        }
        share += most;
    }
    lines->omega *= share;
    return MINE;
}

/* X (K, d), or one context (d) of slots; by: the scale of the widths. MEAN makes no widths: raw is reach |X| then. */
int make_lines(const double *X, const struct model *model, double by, enum score score, double *scratch,
               struct lines *lines)
{
    size_t n = lines->n, d = model->d;
    double *size = scratch, *matrix = scratch + n;
    lines->rho = model->rho;
    lines->omega = model->omega;
    for (size_t i = 0; i < n; i++) {
        size_t arm = lines->place[i];
        const double *x = model->slots ? X : X + arm * d, *theta = model->slots ? model->theta + arm * d : model->theta;
        lines->m[i] = inner(x, theta, d);
        if (model->measured || score == MEAN)
            size[i] = model->slots && i ? size[0] : inner(x, x, d);
    }
    if (score == MEAN) { /* no width is larger than |F| |x| */
        double of_F = model->slots ? 0.0 : inner(model->F, model->F, d * d);
        for (size_t i = 0; i < n; i++) {
            const double *F = model->F + lines->place[i] * d * d;
            lines->w[i] = 0.0;
            lines->raw[i] = sqrt((model->slots ? inner(F, F, d * d) : of_F) * size[i]);
        }
        return MINE;
    }
    if (model->slots)
        length_of_each(X, n, lines->place, model, matrix, lines->raw);
    else
        lengths(X, n, lines->place, model, matrix, lines->raw);
    if (model->measured) {
        if (!measure(model, size, lines))
            return NOT_MINE;
        if (by != 1)
            for (size_t i = 0; i < n; i++)
                lines->w[i] *= by;
        return MINE;
    }
    for (size_t i = 0; i < n; i++) {
        lines->raw[i] = sqrt(lines->raw[i]);
        lines->w[i] = by * lines->raw[i];
    }
    return MINE;
}
