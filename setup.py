"""The compiled step, `dither._step`: built where a compiler is, left out elsewhere. All else stands in pyproject.toml.

A wheel serves every CPython from 3.11 on, since the sources keep to the stable ABI of 3.11. It also needs no processor
but the one of its name, since no flag asks for more: what takes more is chosen when the module is loaded. Flags let
the compiler round as the sources say, and no other way: no product is contracted with a sum unless they say so.
"""

import sys
import sysconfig
from glob import glob

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FLAGS = {
    "unix": ["-std=c11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-g0"],
    "mingw32": ["-std=c11", "-O3", "-ffp-contract=off", "-fno-math-errno"],
    "msvc": ["/std:c11", "/O2", "/fp:precise"],
}
# The stable ABI is CPython's, and of builds with a global lock; elsewhere Python does all.
STABLE = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")

STEP = Extension(
    "dither._step",
    sources=sorted(glob("src/_step/*.c")),
    depends=sorted(glob("src/_step/*.h")),
    define_macros=[("Py_LIMITED_API", "0x030b0000")],
    py_limited_api=True,
    optional=True,  # a build that fails is a notice
)


class BuildStep(build_ext):
    """Compiles with the flags of the compiler that there is, and names the library of what C computes."""

    def build_extensions(self) -> None:
        """Build, once the compiler is known."""
        for extension in self.extensions:
            extension.extra_compile_args = FLAGS.get(self.compiler.compiler_type, [])
            extension.libraries = ["m"] if self.compiler.compiler_type == "unix" else []
        super().build_extensions()


setup(
    ext_modules=[STEP] if STABLE else [],
    cmdclass={"build_ext": BuildStep},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
