/* The module dither._step: what Python sees of the compiled step. */

#include "step.h"

/* Which clone of the loops runs on this processor. Ledgers keep it with the version: clones may round differently. */
static const char *clone(void)
{
    return "portable";
}

static int fill(PyObject *module)
{
    if (PyModule_AddIntConstant(module, "VERSION", STEP_VERSION) < 0)
        return -1;
    return PyModule_AddStringConstant(module, "CLONE", clone());
}

static PyMethodDef methods[] = {{NULL, NULL, 0, NULL}};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};

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
