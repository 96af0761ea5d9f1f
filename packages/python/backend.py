"""The build backend of the sdist, which pip takes where no wheel fits: it says so, or builds for a program that its user has.

The wheels of a release are made by packages/python/build.
"""

import os
import pathlib
import platform
import sys


def get_requires_for_build_wheel(config_settings=None):
    if not os.environ.get("ROWPLANE_PROGRAM"):
        version, platforms = (pathlib.Path(name).read_text().strip() for name in ("VERSION", "PLATFORMS"))
        libc = " ".join(platform.libc_ver()).strip() or "another C library than glibc"
        sys.exit(
            f"rowplane {version} has no wheel for this machine ({platform.system()} {platform.machine()}, {libc}), only for "
            f"{platforms}. Build the program with `cargo build --release` from rowplane's repository, and install this again "
            "with its path in ROWPLANE_PROGRAM"
        )
    return ["hatchling"]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    from hatchling.build import build_wheel

    return build_wheel(wheel_directory, config_settings, metadata_directory)
