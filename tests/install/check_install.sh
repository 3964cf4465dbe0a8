#!/usr/bin/env bash
# Installs a build into an empty folder and uses what lies there: the programs, the libraries by find_package, the man
# pages, the completion, and the rules.
#
# usage: check_install.sh BUILD SOURCE
set -euo pipefail
build=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix=$folder/prefix
fail() { echo "FAILED: $1" >&2; exit 1; }

cmake --install "$build" --prefix "$prefix" >"$folder/install.log" 2>&1 || { cat "$folder/install.log"; fail "cmake --install"; }
[ ! -e "$prefix/gopt" ] || fail "the Python module is for wheels alone"
export PATH=$prefix/bin:$PATH
cd "$folder"

echo "== a program that finds the libraries"
cmake -S "$source/examples/library" -B consumer -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >consumer.log 2>&1 &&
  cmake --build consumer >>consumer.log 2>&1 || { cat consumer.log; fail "the consumer is not built"; }
[ "$(consumer/optimize_model "$source/examples/sin_cos.onnx" out.onnx)" = $'applied sin-cos-squares\ncheck passed' ] || fail "the consumer"
gopt compare "$source/examples/sin_cos.onnx" out.onnx

echo "== man pages of every command"
for command in $(gopt help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  grep -q '^\.TH GOPT' "$prefix/share/man/man1/gopt-$command.1" || fail "man page of $command"
done
grep -q -e '\\-\\-beam\\-width' "$prefix/share/man/man1/gopt-optimize.1" || fail "a flag in its man page"
[ -s "$prefix/share/man/man1/rulegen-verify.1" ] || fail "man page of rulegen verify"

echo "== completion"
source "$prefix/share/bash-completion/completions/gopt"
complete_words() {  # the words before the cursor, the last is being typed
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _gopt
  echo "${COMPREPLY[*]}"
}
[ "$(complete_words gopt opt)" = optimize ] || fail "completion of a command"
[ "$(complete_words gopt help inf)" = info ] || fail "completion of help"
[ "$(complete_words gopt optimize --beam)" = --beam-width ] || fail "completion of a flag"
[ "$(complete_words gopt optimize --search be)" = beam ] || fail "completion of a flag's words"
[ "$(complete_words gopt optimize out)" = out.onnx ] || fail "completion of a file"
[ "$(complete_words rulegen ver)" = verify ] || fail "completion of rulegen"

echo "== the rules are those that are installed"
rm "$prefix"/share/gopt/rules/*.rules
! gopt rules 2>errors || fail "rules from elsewhere"
grep -qF "no rules in $prefix/share/gopt/rules" errors || fail "$(cat errors)"
