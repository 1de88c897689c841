/* The module dither._step: what Python sees of the compiled step.

   A function answers None where the request or the observation is not for the step. Then nothing was changed but memory
   that the caller gave for the answer. */

#include "buffers.h"
#include "step.h"

#include <math.h>

static const size_t LARGE = 1u << 20; /* products above which other threads may run meanwhile */

static int arguments(Py_ssize_t got, Py_ssize_t wanted, const char *name)
{
    if (got == wanted)
        return 1;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, got %zd", name, wanted, got);
    return 0;
}

static PyObject *none(void)
{
    Py_RETURN_NONE;
}

PyDoc_STRVAR(plain_doc, "plain(X, ndim, width, limit): whether X is float64 in C order with so many axes, the last of "
                        "this width, and not empty, and the sum of its squares is below the limit.");

static PyObject *plain(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    struct held held = {.count = 0};
    Py_ssize_t shape[2] = {-1, -1};
    if (!arguments(nargs, 4, "plain"))
        return NULL;
    Py_ssize_t ndim = PyLong_AsSsize_t(args[1]), width = PyLong_AsSsize_t(args[2]);
    double limit = PyFloat_AsDouble(args[3]);
    if (PyErr_Occurred())
        return NULL;
    if (ndim < 1 || ndim > 2)
        Py_RETURN_FALSE;
    shape[ndim - 1] = width;
    const double *X = numbers(&held, args[0], (int)ndim, shape, 0);
    int fits = X != NULL;
    if (fits) {
        size_t size = (size_t)shape[0] * (ndim == 2 ? (size_t)shape[1] : 1);
        fits = inner(X, X, size) < limit;
    }
    let_go(&held);
    return PyBool_FromLong(fits);
}

/* The scales of widths in units of rewards: (lam, noise, prior), or (lam, sums) with the sums of each of n slots. */
static int scaled(struct held *held, struct model *model, PyObject *given, Py_ssize_t n, int slots)
{
    double *parts[3] = {&model->lam, &model->noise, &model->prior};
    model->measured = given != Py_None;
    if (!model->measured)
        return 1;
    Py_ssize_t size = PyTuple_Check(given) ? PyTuple_Size(given) : 0, shape[2] = {n, 7};
    for (Py_ssize_t i = 0; i < (size == 2 ? 1 : size); i++) {
        PyObject *part = PyTuple_GetItem(given, i);
        if (i >= 3 || !PyFloat_Check(part))
            return 0;
        *parts[i] = PyFloat_AsDouble(part);
    }
    if (size == 2) {
        PyObject *given_sums = PyTuple_GetItem(given, 1);
        const double *sums = slots ? numbers(held, given_sums, 2, shape, 0) : numbers(held, given_sums, 1, shape + 1, 0);
        if (sums == NULL)
            return 0;
        found(model, sums, (size_t)n);
    }
    return size == 2 || size == 3;
}

/* What `lost` says of the rounding of each of n slots, where it is given. */
static int rounded(struct held *held, struct model *model, PyObject *given, Py_ssize_t n, int slots)
{
    Py_ssize_t shape[2] = {n, 5 + 4 * (Py_ssize_t)model->d};
    if (given == Py_None)
        return 1;
    const double *sums = slots ? numbers(held, given, 2, shape, 0) : numbers(held, given, 1, shape + 1, 0);
    if (sums == NULL)
        return 0;
    lost(model, sums, (size_t)n);
    return 1;
}

/* The lines of the arms on offer, and what is shown of them. wanted: an arm that is shown whatever z is, or -1. */
static int answer(const double *X, size_t K, const unsigned char *mask, const struct model *model, double by, double z,
                  enum score score, Py_ssize_t wanted, char *memory, struct choice *choice)
{
    struct lines lines = {.n = 0};
    double *numbers = (double *)memory;
    lines.m = numbers;
    lines.w = numbers + K;
    lines.raw = numbers + 2 * K;
    double *scratch = numbers + 3 * K;
    lines.place = (size_t *)(scratch + 2 * K + lines_scratch(K, model));
    size_t at = 0;
    int shown = wanted < 0;
    for (size_t i = 0; i < K; i++)
        if (mask == NULL || mask[i]) {
            if ((Py_ssize_t)i == wanted) {
                at = lines.n;
                shown = 1;
            }
            lines.place[lines.n++] = i;
        }
    if (lines.n == 0 || !shown || !make_lines(X, model, by, score, scratch, &lines))
        return NOT_MINE;
    int mine;
    if (score != DRAWN)
        mine = wanted < 0 ? highest(&lines, scratch, choice) : NOT_MINE;
    else
        mine = wanted < 0 ? decide(&lines, z, scratch, choice) : alone(&lines, at, choice);
    if (mine)
        choice->arm = lines.place[choice->arm];
    return mine;
}

PyDoc_STRVAR(choose_doc,
             "choose(X, mask, factors, by, score, z, wanted) -> (arm, p, low, high), or None\n\n"
             "factors: (theta, F, lost, rho, omega, scales), `Factors` of models/model.py\n"
             "X (K, d), theta (d,), F (d, d); slots: X (d,), theta (K, d), F (K, d, d). mask (K,) bool or None\n"
             "lost : of models/digits.py, (5 + 4 d,), slots (K, 5 + 4 d), or None\n"
             "rho, omega : what is added to its errors of means in widths, and to its relative ones of widths: floats\n"
             "scales : None, or (lam, noise, prior) of widths in units of rewards, or (lam, sums) of models/units.py\n"
             "by : the scale of the widths; score : 0 lines at z, 1 at z = 1, 2 means\n"
             "wanted : an arm that is shown whatever z is, or -1; p : that of a normal z between low and high");

static PyObject *choose(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    struct held held = {.count = 0};
    struct model model = {.d = 0};
    struct choice choice = {0, 0, 0};
    int mine = NOT_MINE;
    if (!arguments(nargs, 7, "choose"))
        return NULL;
    PyObject *of[6];
    if (!PyTuple_Check(args[2]) || PyTuple_Size(args[2]) != 6) {
        PyErr_SetString(PyExc_TypeError, "factors must be a tuple of six");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < 6; i++)
        of[i] = PyTuple_GetItem(args[2], i);
    model.rho = PyFloat_AsDouble(of[3]);
    model.omega = PyFloat_AsDouble(of[4]);
    double by = PyFloat_AsDouble(args[3]), z = PyFloat_AsDouble(args[5]);
    long score = PyLong_AsLong(args[4]);
    Py_ssize_t wanted = PyLong_AsSsize_t(args[6]);
    if (PyErr_Occurred())
        return NULL;
    Py_ssize_t of_X[2] = {-1, -1}, of_theta[2] = {-1, -1};
    const double *X = numbers(&held, args[0], 2, of_X, 0);
    if (X == NULL) { /* one context of slots */
        let_go(&held);
        model.slots = 1;
        X = numbers(&held, args[0], 1, of_X + 1, 0);
    }
    Py_ssize_t d = of_X[1];
    of_theta[1] = d;
    model.theta = X == NULL ? NULL : numbers(&held, of[0], 1 + model.slots, of_theta + !model.slots, 0);
    if (model.theta == NULL)
        goto done;
    Py_ssize_t K = model.slots ? of_theta[0] : of_X[0], slots = model.slots ? K : 1;
    const unsigned char *mask = NULL;
    model.d = (size_t)d;
    model.F = matrices(&held, of[1], 2 + model.slots, K, d, &model.turned);
    if (model.F == NULL || !rounded(&held, &model, of[2], slots, model.slots) ||
        !scaled(&held, &model, of[5], slots, model.slots))
        goto done;
    if (args[1] != Py_None && (mask = truths(&held, args[1], K)) == NULL)
        goto done;
    size_t n = (size_t)K;
    char *memory = PyMem_Malloc((5 * n + lines_scratch(n, &model)) * sizeof(double) + n * sizeof(size_t));
    if (memory == NULL || score < DRAWN || score > MEAN) {
        PyMem_Free(memory);
        goto done;
    }
    if (n * model.d * model.d > LARGE) {
        Py_BEGIN_ALLOW_THREADS
        mine = answer(X, n, mask, &model, by, z, (enum score)score, wanted, memory, &choice);
        Py_END_ALLOW_THREADS
    } else {
        mine = answer(X, n, mask, &model, by, z, (enum score)score, wanted, memory, &choice);
    }
    PyMem_Free(memory);
done:
    let_go(&held);
    if (!mine)
        return none();
    return Py_BuildValue("nddd", (Py_ssize_t)choice.arm, normal_mass(choice.low, choice.high), choice.low, choice.high);
}

PyDoc_STRVAR(learn_doc,
             "learn(F, theta, lost, sums, x, r, weight, new_F, new_theta, new_lost, new_sums) -> s, or None.\n\n"
             "F (d, d), theta (d,), lost (5 + 4 d,), x (d,), r a float; sums (7,), or None for both. What is new is\n"
             "written, and shares no memory with anything else.");

static PyObject *learn_(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    struct held held = {.count = 0};
    struct learnt learnt = {NULL, NULL, NULL, NULL, 0};
    int mine = NOT_MINE, summed;
    if (!arguments(nargs, 11, "learn"))
        return NULL;
    double r = PyFloat_AsDouble(args[5]), weight = PyFloat_AsDouble(args[6]);
    if (PyErr_Occurred())
        return NULL;
    summed = args[3] != Py_None;
    Py_ssize_t d = -1, seven = 7;
    const double *x = numbers(&held, args[4], 1, &d, 0), *sums = NULL;
    if (x == NULL)
        goto done;
    Py_ssize_t square[2] = {d, d}, digits = 5 + 4 * d;
    const double *F = numbers(&held, args[0], 2, square, 0), *theta = numbers(&held, args[1], 1, &d, 0);
    const double *lost = numbers(&held, args[2], 1, &digits, 0);
    if (summed)
        sums = numbers(&held, args[3], 1, &seven, 0);
    if (F == NULL || theta == NULL || lost == NULL || (summed && sums == NULL))
        goto done;
    learnt.F = numbers(&held, args[7], 2, square, 1);
    learnt.theta = numbers(&held, args[8], 1, &d, 1);
    learnt.lost = numbers(&held, args[9], 1, &digits, 1);
    if (summed)
        learnt.sums = numbers(&held, args[10], 1, &seven, 1);
    if (learnt.F == NULL || learnt.theta == NULL || learnt.lost == NULL || (summed && learnt.sums == NULL) ||
        !separate(&held, summed ? 4 : 3))
        goto done;
    double *scratch = PyMem_Malloc(3 * (size_t)d * sizeof(double));
    if (scratch == NULL)
        goto done;
    if ((size_t)d * (size_t)d > LARGE) {
        Py_BEGIN_ALLOW_THREADS
        mine = learn((size_t)d, F, theta, lost, sums, x, r, weight, scratch, &learnt);
        Py_END_ALLOW_THREADS
    } else {
        mine = learn((size_t)d, F, theta, lost, sums, x, r, weight, scratch, &learnt);
    }
    PyMem_Free(scratch);
done:
    let_go(&held);
    return mine ? PyFloat_FromDouble(learnt.s) : none();
}

static int fill(PyObject *module)
{
    if (PyModule_AddIntConstant(module, "VERSION", STEP_VERSION) < 0)
        return -1;
    return PyModule_AddIntConstant(module, "ARITHMETIC", STEP_ARITHMETIC);
}

static PyMethodDef methods[] = {
    {"plain", (PyCFunction)(void (*)(void))plain, METH_FASTCALL, plain_doc},
    {"choose", (PyCFunction)(void (*)(void))choose, METH_FASTCALL, choose_doc},
    {"learn", (PyCFunction)(void (*)(void))learn_, METH_FASTCALL, learn_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)fill}, {0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "dither._step",
    .m_doc = "What is quick in a decision and its reward, compiled.",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__step(void)
{
    return PyModuleDef_Init(&definition);
}
