"""A build backend that only says why there is nothing to build."""

import platform
import sys


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    libc = " ".join(platform.libc_ver()) or "another C library than glibc"
    sys.exit(
        f"rowplane VERSION has no wheel for this machine ({platform.system()} {platform.machine()}, {libc}). There are wheels for: "
        "WHEELS. Elsewhere, on Alpine for one, build the program with `cargo build --release` from its repository, and "
        "name it in ROWPLANE_PROGRAM; the Python files alone are in the wheels."
    )


prepare_metadata_for_build_wheel = build_wheel
build_sdist = build_wheel
