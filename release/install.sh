#!/bin/sh
# Installs rowplane from its release archive, after checking the archive's checksum:
#
#   sh install.sh [--to DIR] [--from DIR|URL] [--version VERSION]
#
# --to       the folder that gets the program (default: /usr/local/bin for root, ~/.local/bin otherwise)
# --from     where the archive and SHA256SUMS are (default: beside this script; where they are not, @RELEASES@/v@VERSION@)
# --version  the release (default: @VERSION@)
#
# Nothing is changed unless everything has been checked.
set -eu

version=@VERSION@
releases=@RELEASES@
from=
to=

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

usage() {
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
}

while [ $# -gt 0 ]; do
    case $1 in
    --to | --from | --version)
        [ $# -ge 2 ] || fail "$1 needs a value"
        case $1 in
        --to) to=$2 ;;
        --from) from=$2 ;;
        --version) version=$2 ;;
        esac
        shift 2
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *) fail "unknown argument $1 (see --help)" ;;
    esac
done

# Prints the target whose archive runs here.
target() {
    machine=$(uname -m)
    case $machine in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "there is no archive for the processor $machine: the release has x86_64 and aarch64" ;;
    esac
    case $(uname -s) in
    Linux)
        glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || glibc=
        case $glibc in
        'glibc '*) ;;
        *) fail "this system has no glibc (Alpine's is musl): take the archive rowplane-$version-$machine-unknown-linux-musl.tar.gz, or the image" ;;
        esac
        minor=${glibc#glibc 2.}
        [ "${minor%%[!0-9]*}" -ge 17 ] || fail "this system has $glibc, and rowplane needs 2.17 or later: take the archive rowplane-$version-$machine-unknown-linux-musl.tar.gz"
        echo "$machine-unknown-linux-gnu"
        ;;
    Darwin) echo "$machine-apple-darwin" ;;
    *) fail "there is no archive for $(uname -s): the release has Linux and macOS" ;;
    esac
}

# Copies a file of the release to a file here.
get() {
    case $from in
    http://* | https://*)
        if command -v curl >/dev/null; then
            curl -fsL --retry 2 -o "$2" "$from/$1" || fail "$from/$1 cannot be fetched"
        elif command -v wget >/dev/null; then
            wget -q -O "$2" "$from/$1" || fail "$from/$1 cannot be fetched"
        else
            fail "neither curl nor wget is here to fetch $from/$1"
        fi
        ;;
    *) cp "$from/$1" "$2" 2>/dev/null || fail "there is no $1 in $from" ;;
    esac
}

sum() {
    if command -v sha256sum >/dev/null; then
        sha256sum "$1"
    else
        shasum -a 256 "$1"
    fi | cut -d' ' -f1
}

target=$(target)
name=rowplane-$version-$target
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
if [ -z "$from" ]; then
    if [ -e "$here/$name.tar.gz" ]; then from=$here; else from=$releases/v$version; fi
fi
if [ -z "$to" ]; then
    if [ "$(id -u)" = 0 ]; then to=/usr/local/bin; else to=$HOME/.local/bin; fi
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
get "$name.tar.gz" "$work/archive"
get SHA256SUMS "$work/sums"
expected=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\.tar\.gz\$/\1/p" "$work/sums")
[ -n "$expected" ] || fail "SHA256SUMS has no line for $name.tar.gz"
actual=$(sum "$work/archive")
[ "$actual" = "$expected" ] || fail "the checksum of $name.tar.gz is $actual, and not $expected as SHA256SUMS says: nothing is installed"
tar -xzf "$work/archive" -C "$work" || fail "$name.tar.gz cannot be unpacked"

mkdir -p "$to" 2>/dev/null || fail "$to cannot be made: name a folder of yours by --to"
# Renamed into its place: a server that runs keeps its program.
cp "$work/$name/rowplane" "$to/.rowplane.$$" 2>/dev/null || fail "$to is not writable: name a folder of yours by --to, or be root"
mv "$to/.rowplane.$$" "$to/rowplane"
echo "$("$to/rowplane" --version) is in $to"
case :$PATH: in
*":$to:"*) ;;
*) echo "add it to the PATH: export PATH=\"$to:\$PATH\"" ;;
esac
