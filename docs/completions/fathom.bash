# Completion of fathom for bash. Made from cli/commands.c by make docs; do not edit.
_fathom() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    local first='' second='' words='' known="doctor help version" i
    COMPREPLY=()
    case $before in
    --path)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --bundle)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --memory)
        return
        ;;
    --device)
        mapfile -t COMPREPLY < <(compgen -W "auto cpu cuda" -- "$word")
        return
        ;;
    --threads)
        return
        ;;
    --trace)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --scratch)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        return
        ;;
    --log)
        mapfile -t COMPREPLY < <(compgen -W "error warn info debug" -- "$word")
        return
        ;;
    esac
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [ -n "$first" ]; then
            case ${COMP_WORDS[i]} in -*) ;; *) second=${COMP_WORDS[i]}; break ;; esac
        fi
        case " $known " in *" ${COMP_WORDS[i]} "*) first=${COMP_WORDS[i]} ;; esac
    done
    case "$first $second" in
    ' '*) words="$known --help --version" ;;
    'doctor '*) words="--ops --path --bundle --memory --device --threads --json --trace --scratch --log --help" ;;
    'help '*) words="--trace --help $known" ;;
    'version '*) words="--verbose --json --trace --help" ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _fathom fathom
