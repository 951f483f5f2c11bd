#!/bin/sh
# Puts the guardhook executable on this machine, updates it, or takes it away. Needs no root below your own home.
#
#   install.sh [--from FILE | --url URL | --build] [--sha256 HEX] [--prefix DIR]
#   install.sh --remove [--prefix DIR]
#
# Without a source: a file `guardhook` beside this script, else ../dist/guardhook, else it is built from this source tree.
# The file's SHA-256 must be the one given with --sha256, or stand in a file SHA256SUMS beside it.
set -eu
umask 022

say() { printf '%s\n' "guardhook install: $*" >&2; }
die() {
    say "$*"
    exit 1
}
usage() {
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
value() {
    if [ "$#" -lt 2 ] || [ -z "$2" ]; then
        say "$1 needs a value"
        usage
    fi
}

from='' url='' build='' sum='' remove=''
prefix=${HOME:+$HOME/.local}
while [ "$#" -gt 0 ]; do
    case $1 in
    --from) value "$@" && from=$2 && shift ;;
    --url) value "$@" && url=$2 && shift ;;
    --sha256) value "$@" && sum=$2 && shift ;;
    --prefix) value "$@" && prefix=$2 && shift ;;
    --build) build=yes ;;
    --remove) remove=yes ;;
    -h | --help) usage ;;
    *) say "unknown option $1" && usage ;;
    esac
    shift
done
[ -n "$prefix" ] || die "HOME is not set; say where with --prefix DIR"
case $prefix in /*) ;; *) prefix=$(pwd)/$prefix ;; esac
[ -z "$from$url" ] || [ -z "$build" ] || die "--build goes with neither --from nor --url"
[ -z "$from" ] || [ -z "$url" ] || die "--from and --url exclude one another"
target=$prefix/bin/guardhook
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

if [ -n "$remove" ]; then
    [ -e "$target" ] || [ -L "$target" ] || die "there is no $target"
    # Harnesses would go on calling a hook that is being removed: take the registrations out first.
    if ! "$target" uninstall --all >&2; then
        die "the harnesses could not be unregistered; nothing was removed (try: $target uninstall --all)"
    fi
    rm -f -- "$target" || die "$target can't be removed"
    say "removed $target; recorded sessions were kept"
    exit 0
fi

digest() {
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum -- "$1" | cut -d ' ' -f 1
    elif command -v shasum >/dev/null 2>&1; then
        shasum -a 256 -- "$1" | cut -d ' ' -f 1
    elif command -v openssl >/dev/null 2>&1; then
        openssl dgst -sha256 -r -- "$1" | cut -d ' ' -f 1
    else
        die "no program here computes SHA-256 (sha256sum, shasum or openssl)"
    fi
}

work=$(mktemp -d) || die "no temporary folder can be made"
partial=''
cleanup() {
    rm -rf -- "$work"
    [ -z "$partial" ] || rm -f -- "$partial"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

if [ -n "$url" ]; then
    [ -n "$sum" ] || die "--url needs --sha256: what comes from elsewhere is checked against what you know"
    # wget keeps to https in recursive downloads only, whatever its option says.
    case $url in https://*) ;; *) die "--url must begin with https://" ;; esac
    from=$work/guardhook
    if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --proto '=https' --output "$from" "$url" || die "$url can't be fetched"
    elif command -v wget >/dev/null 2>&1; then
        wget --quiet --https-only --output-document="$from" "$url" || die "$url can't be fetched"
    else
        die "neither curl nor wget is here; fetch the file yourself and use --from"
    fi
elif [ -z "$from" ] && [ -z "$build" ]; then
    for candidate in "$here/guardhook" "$here/../dist/guardhook"; do
        [ -f "$candidate" ] && from=$candidate && break
    done
    [ -n "$from" ] || build=yes
fi
if [ -n "$build" ]; then
    [ -f "$here/../build/release" ] || die "there is nothing to install: no executable beside this script, and no source tree"
    say "building from source"
    "${PYTHON:-python3}" "$here/../build/release" --out "$work/dist" >&2 || die "the build failed"
    from=$work/dist/guardhook
fi
[ -f "$from" ] || die "there is no file $from"

# Everything from here on is about one private copy: what was checked is what is installed.
cp -- "$from" "$work/checked" || die "$from can't be read"
if [ -z "$sum" ]; then
    sums=$(dirname -- "$from")/SHA256SUMS
    [ -f "$sums" ] || die "there is no SHA256SUMS beside $from; give the expected hash with --sha256"
    sum=$(awk -v name="$(basename -- "$from")" '$2 == name || $2 == "*" name { print $1; exit }' "$sums")
    [ -n "$sum" ] || die "$sums says nothing about $(basename -- "$from")"
fi
sum=$(printf %s "$sum" | tr 'A-F' 'a-f')
found=$(digest "$work/checked")
[ "$found" = "$sum" ] || die "SHA-256 of $from is $found, expected $sum: not installed"
chmod 755 "$work/checked"
version=$("$work/checked" --version 2>/dev/null) || die "$from does not run on this machine"

mkdir -p -- "$prefix/bin" || die "$prefix/bin can't be made"
if [ -f "$target" ] && [ "$(digest "$target")" = "$sum" ]; then
    say "$target is up to date ($version)"
else
    partial=$prefix/bin/.guardhook.$$
    cp -- "$work/checked" "$partial" || die "$prefix/bin can't be written"
    chmod 755 "$partial"
    mv -f -- "$partial" "$target" || die "$target can't be replaced"
    partial=''
    say "$target is in place ($version)"
fi
case :${PATH-}: in
*":$prefix/bin:"*) ;;
*) say "$prefix/bin is not in PATH" ;;
esac
say "next: guardhook install claude-code (or codex, gemini); after an update run it again"
