# Completion of gopt and rulegen for bash: subcommands and flags as their --help lists them, the words that a flag takes
# where there is a list of them, files elsewhere. Nothing is written here that the programs say.
_gopt() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} help words
  local command=${COMP_WORDS[1]}
  if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ $command == help ]]; }; then
    words=$("$program" --help 2>/dev/null | sed -n '/^Subcommands:/,/^$/s/^  \([a-z][a-z-]*\).*/\1/p')
    [[ $command == help && $COMP_CWORD == 2 ]] || words+=" help"
  else
    help=$("$program" "$command" --help 2>/dev/null) || return
    words=$(sed -n "s/^  \(-[a-z],\)\?\(--[a-z-]*,\)*$previous [^{]*:{\([^}]*\)}.*/\3/p" <<<"$help" | tr ',' ' ')
    if [[ -z $words && $current == -* ]]; then words=$(grep -oE '^  (-[a-z],)?--[a-z][a-z,-]*' <<<"$help" | tr ',' ' '); fi
  fi
  if [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -o filenames -F _gopt gopt rulegen
