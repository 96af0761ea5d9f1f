"""What is linked into the program: the crates of Cargo.lock that a target's build takes in, without what only runs while it compiles."""

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Crates whose package lacks the licence of their repository: another crate of it that has it.
BESIDE = {"tonic-prost": "tonic"}
TITLE = re.compile(r"(?i)^(un)?licen[cs]e|^copying|^notice|^copyright")
# Folders of vendored sources that the compiler does not see.
UNSEEN = {"tests", "test", "doc", "docs", "third_party", "util", "sqlcipher", "benches", "examples", "fuzz"}


@dataclass
class Crate:
    name: str
    version: str
    licence: str
    repository: str
    folder: Path
    checksum: str | None

    @property
    def ours(self):
        return self.checksum is None


def run(*command):
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def crates(target):
    """The crates that are linked for the target, ours among them, by name and version."""
    tree = run("cargo", "tree", "--locked", "--package=rowplane", "--edges=normal,no-proc-macro", f"--target={target}",
               "--prefix=none", "--format={p}")
    named = {tuple(line.split()[:2]) for line in tree.splitlines() if line.strip()}
    metadata = json.loads(run("cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={target}"))
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    found = [
        Crate(package["name"], package["version"], package["license"] or "", package["repository"] or "",
              Path(package["manifest_path"]).parent, checksums[package["name"], package["version"]])
        for package in metadata["packages"]
        if (package["name"], "v" + package["version"]) in named
    ]
    assert len(found) == len(named), named - {(crate.name, "v" + crate.version) for crate in found}
    return sorted(found, key=lambda crate: (crate.name, crate.version))


def licence_files(crate, among):
    """The files that hold the crate's licences, those of sources in other languages that it brings included."""
    paths = []
    for folder, folders, names in os.walk(crate.folder):
        folders[:] = sorted(set(folders) - UNSEEN)
        titled = TITLE.match(Path(folder).name) and Path(folder) != crate.folder
        paths += [Path(folder) / name for name in sorted(names) if (titled or TITLE.match(name)) and not name.endswith((".rs", ".h", ".c"))]
    if not paths and crate.name in BESIDE:
        beside = next(other for other in among if other.name == BESIDE[crate.name])
        return licence_files(beside, among)
    return paths


def without_licence(among):
    return [crate for crate in among if not crate.ours and not (crate.licence and licence_files(crate, among))]


def refuse_missing(among):
    """Ends the process where a crate has no licence."""
    missing = without_licence(among)
    for crate in missing:
        print(f"{crate.name} {crate.version} has no licence in its package ({crate.licence or 'none is named either'})", file=sys.stderr)
    if missing:
        sys.exit(1)
