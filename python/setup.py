"""A wheel of Python for any interpreter, with a program for one platform."""
from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.dist import Distribution


class WithProgram(Distribution):
    def has_ext_modules(self):
        import os
        return os.path.exists("accel_opt/bin/accel-opt")


class Wheel(bdist_wheel):
    def get_tag(self):
        # The program asks for nothing of the interpreter; tools/package names
        # the platform, which the program's links decide.
        return "py3", "none", super().get_tag()[2]


setup(distclass=WithProgram, cmdclass={"bdist_wheel": Wheel})
