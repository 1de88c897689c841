/* Arrays of Python as C sees them: looked at by the buffer protocol, which needs no headers of NumPy. */

#ifndef DITHER_BUFFERS_H
#define DITHER_BUFFERS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { MOST_BUFFERS = 10 };

/* The views that one call holds; `let_go` gives them all back. */
struct held {
    Py_buffer views[MOST_BUFFERS];
    int count;
};

/* The float64 numbers of an array in C order with this shape; a length of -1: any, which is written there. NULL, without
   an exception, for whatever is no such array. */
double *numbers(struct held *held, PyObject *array, int ndim, Py_ssize_t *shape, int writable);

/* The float64 numbers of a square matrix (d, d), or of K of them, (K, d, d), each in C order or, `turned`, in Fortran's,
   as LAPACK leaves it. */
const double *matrices(struct held *held, PyObject *array, int ndim, Py_ssize_t K, Py_ssize_t d, int *turned);

/* The truth values of an array (n), likewise. */
const unsigned char *truths(struct held *held, PyObject *array, Py_ssize_t n);

/* Whether the last `written` of the arrays that are held share no memory with any other. */
int separate(const struct held *held, int written);

void let_go(struct held *held);

#endif
