/* Arrays of Python as C sees them. */

#include "buffers.h"

#include <stdint.h>
#include <string.h>

static Py_buffer *hold(struct held *held, PyObject *array, int flags, const char *format, Py_ssize_t size)
{
    if (held->count == MOST_BUFFERS || !PyObject_CheckBuffer(array))
        return NULL;
    Py_buffer *view = &held->views[held->count];
    if (PyObject_GetBuffer(array, view, flags) < 0) {
        PyErr_Clear(); /* it is not in C order, or read-only: not for the step */
        return NULL;
    }
    held->count++;
    if (view->itemsize != size || view->format == NULL || strcmp(view->format, format) != 0)
        return NULL;
    return view;
}

double *numbers(struct held *held, PyObject *array, int ndim, Py_ssize_t *shape, int writable)
{
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    Py_buffer *view = hold(held, array, flags, "d", sizeof(double));
    if (view == NULL || view->ndim != ndim || (uintptr_t)view->buf % sizeof(double) != 0)
        return NULL;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            shape[i] = view->shape[i];
        if (view->shape[i] != shape[i] || shape[i] == 0)
            return NULL;
    }
    return view->buf;
}

const double *matrices(struct held *held, PyObject *array, int ndim, Py_ssize_t K, Py_ssize_t d, int *turned)
{
    const Py_ssize_t one = sizeof(double);
    Py_buffer *view = hold(held, array, PyBUF_STRIDES | PyBUF_FORMAT, "d", one);
    if (view == NULL || view->ndim != ndim || (uintptr_t)view->buf % sizeof(double) != 0)
        return NULL;
    const Py_ssize_t *shape = view->shape + ndim - 2, *strides = view->strides + ndim - 2;
    if (shape[0] != d || shape[1] != d || d == 0)
        return NULL;
    if (ndim == 3 && (view->shape[0] != K || view->strides[0] != d * d * one))
        return NULL;
    *turned = strides[0] == one && strides[1] == d * one;
    return *turned || (strides[0] == d * one && strides[1] == one) ? view->buf : NULL;
}

const unsigned char *truths(struct held *held, PyObject *array, Py_ssize_t n)
{
    Py_buffer *view = hold(held, array, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT, "?", 1);
    return view == NULL || view->ndim != 1 || view->shape[0] != n ? NULL : view->buf;
}

int separate(const struct held *held, int written)
{
    for (int i = held->count - written; i < held->count; i++) {
        const char *start = held->views[i].buf, *end = start + held->views[i].len;
        for (int j = 0; j < held->count; j++) {
            const char *other = held->views[j].buf;
            if (j != i && other < end && start < other + held->views[j].len)
                return 0;
        }
    }
    return 1;
}

void let_go(struct held *held)
{
    while (held->count > 0)
        PyBuffer_Release(&held->views[--held->count]);
}
