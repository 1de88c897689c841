/* The mass that the normal law gives an interval: `Gaussian.mass` of noise/laws.py, operation by operation. */

#include "step.h"

#include <math.h>

static const double ROOT_HALF = 0.70710678118654757;
static const double ROOT_2PI = 2.5066282746310002;

double normal_mass(double low, double high)
{
    if (!(low < high))
        return 0.0;
    if (low > 0) {
        double turned = -low;
        low = -high;
        high = turned;
    }
    if (high - low < 1e-3 / (1 - low)) { /* the density times the length, and the term of its curvature */
        double z = 0.5 * (low + high), h = high - low;
        return h * exp(-0.5 * z * z) * (1 + (z * z - 1) * h * h / 24) / ROOT_2PI;
    }
    return 0.5 * (erfc(-high * ROOT_HALF) - erfc(-low * ROOT_HALF));
}
