"""Puts the program into the wheel, and names the machines that it runs on in the wheel's tag."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):
    def initialize(self, version, build_data):
        program = os.environ["ROWPLANE_PROGRAM"]
        name = "rowplane.exe" if program.endswith(".exe") else "rowplane"
        build_data["shared_scripts"][program] = name
        build_data["pure_python"] = False
        target = os.environ.get("ROWPLANE_TARGET")
        # Without one, the wheel is for the machine that builds it.
        build_data["infer_tag"] = target is None
        if target:
            build_data["tag"] = f"py3-none-{platform(*target.split())}"


def platform(system, machine, libc, version=None):
    """The platforms of a wheel, from what `packages/target` prints."""
    if system == "darwin":
        return "macosx_11_0_arm64" if machine == "aarch64" else "macosx_10_12_x86_64"
    if system == "windows":
        return "win_arm64" if machine == "aarch64" else "win_amd64"
    if libc == "glibc":
        return f"manylinux_{version.replace('.', '_')}_{machine}"
    musl = f"musllinux_1_2_{machine}"
    return musl if libc == "musl" else f"manylinux_2_17_{machine}.{musl}"
