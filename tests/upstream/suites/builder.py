"""Brings a suite's module by Go's proxy, and builds the test programs of its packages."""

import json
import os
import pathlib
import shutil
import subprocess

GO = {"GOFLAGS": "-mod=mod -buildvcs=false", "GOWORK": "off", "CGO_ENABLED": "0"}
# For the shell lines of `prepare`: `module PATH@VERSION` is the folder of another module.
SHELL = """set -euo pipefail
module() { go mod download -json "$1" | sed -n 's/^\\s*"Dir": "\\(.*\\)",$/\\1/p'; }
"""


def go(folder, *arguments):
    """What a go command prints. Fails with the end of what it complains about."""
    return command(folder, ["go", *arguments])


def command(folder, line, **variables):
    done = subprocess.run(line, cwd=folder, env=os.environ | GO | variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ChildProcessError(" ".join((done.stderr or done.stdout).strip().splitlines()[-4:]))
    return done.stdout


def module(folder, suite, kubectl):
    """The copy of a suite's module, edited as suites.ini says."""
    copy = folder / "module"
    if (folder / "prepared").exists():
        return copy
    shutil.rmtree(copy, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    source = json.loads(go(folder, "mod", "download", "-json", suite["module"]))["Dir"]
    shutil.copytree(source, copy)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    if "edit" in suite:
        go(copy, "mod", "edit", *suite["edit"].split())
    if "prepare" in suite:
        command(copy, ["bash", "-c", SHELL + suite["prepare"]], KUBECTL=str(kubectl))
    (folder / "prepared").touch()
    return copy


def file_name(package):
    """The name of a package's files; `top` is the module's own package."""
    return "top" if package == "." else package.replace("/", "_")


def build(folder, suite, kubectl):
    """The test programs of a suite: by package, the program and the folder where it runs."""
    copy = module(folder, suite, kubectl)
    found = go(copy, "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}", *suite["packages"].split())
    left = set(suite.get("without", "").split())
    tests = {}
    for line in found.splitlines():
        path, where = line.split(" ", 1)
        package = str(pathlib.Path(where).relative_to(copy))
        if package in left:
            continue
        program = folder / "tests" / f"{file_name(package)}.test"
        if not program.exists():
            print(f"building {folder.name} {package}", flush=True)
            go(copy, "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", str(program), path)
        tests[package] = (program, pathlib.Path(where))
    return tests
