/* What the files of the compiled step share. */

#ifndef DITHER_STEP_H
#define DITHER_STEP_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* The version of the arithmetic: a larger one whenever any number may round otherwise than before. Ledgers keep it
 * with what was learnt, and `dither/base/compiled.py` takes no other than its own. */
#define STEP_VERSION 1

#endif
