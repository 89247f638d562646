# SPDX-License-Identifier: MIT
"""`spcomm completion SHELL`: completion for bash, zsh and fish.

Each shell has a few lines that ask `spcomm completion --words` what may stand at the cursor, so what they offer is what
this version accepts. The answer is a line FILE or FOLDER, for names that the shell itself completes, or a line for each
word, with a tab before its description.
"""

from argparse import SUPPRESS
from typing import TYPE_CHECKING

from spcomm.argument_parser import ArgumentParser, one_of

if TYPE_CHECKING:
    from spcomm.argument_parser import Arguments

_BASH = r"""
_spcomm() {
    local answer line
    COMPREPLY=()
    answer=$("${COMP_WORDS[0]}" completion --words bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return
    case $answer in
        FILE) compopt -o default 2>/dev/null ;;
        FOLDER) compopt -o dirnames 2>/dev/null ;;
        *) while IFS= read -r line; do
            [ -n "$line" ] && COMPREPLY+=("${line%%$'\t'*}")
        done <<< "$answer" ;;
    esac
}
complete -F _spcomm spcomm
"""
_ZSH = r"""#compdef spcomm
_spcomm() {
    local answer line
    local -a found
    answer=$("${words[1]}" completion --words zsh "${(@)words[2,CURRENT]}" 2>/dev/null) || return
    case $answer in
        FILE) compset -P '-*='; _files ;;
        FOLDER) compset -P '-*='; _files -/ ;;
        *) for line in "${(@f)answer}"; do
            [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
        done
        _describe spcomm found ;;
    esac
}
if [ "$funcstack[1]" = "_spcomm" ]; then
    _spcomm "$@"
else
    compdef _spcomm spcomm
fi
"""
_FISH = r"""
function __spcomm_complete
    set -l typed (commandline -opc) (commandline -ct)
    set -l answer ($typed[1] completion --words fish $typed[2..-1] 2>/dev/null)
    set -l option (string match -r '^-[^=]*=' -- $typed[-1])
    set -l value (string replace -r '^-[^=]*=' '' -- $typed[-1])
    switch "$answer"
        case FILE
            printf "$option%s\n" (__fish_complete_path $value)
        case FOLDER
            printf "$option%s\n" (__fish_complete_directories $value)
        case '*'
            printf '%s\n' $answer
    end
end
complete -c spcomm -f -a '(__spcomm_complete)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def parser() -> ArgumentParser:
    """Return the parser of `spcomm completion`."""
    made = ArgumentParser(
        "spcomm completion",
        "spcomm completion bash|zsh|fish",
        "Prints what makes a shell complete commands, options and values of spcomm when Tab is pressed.",
        "A shell that reads one of these lines at its start has it in every session:\n\n"
        '  bash  ~/.bashrc                   eval "$(spcomm completion bash)"\n'
        '  zsh   ~/.zshrc, after compinit    eval "$(spcomm completion zsh)"\n'
        "  fish  ~/.config/fish/config.fish  spcomm completion fish | source",
        completed=lambda before: [] if before else [(name, "") for name in _SCRIPTS],
    )
    made.add_argument("shell", metavar="bash|zsh|fish", type=one_of("shell", list(_SCRIPTS)), help=SUPPRESS)
    return made


def main(words: "list[str]") -> int:
    """Print the lines for a shell, or, for these, what may stand at the cursor."""
    if words[:1] == ["--words"]:
        return _answer("".join(words[1:2]), words[2:] or [""])
    print(script(parser().parse_args(words).shell), end="")
    return 0


def script(shell: str) -> str:
    """Return what this shell is to read."""
    return _SCRIPTS[shell].lstrip("\n")


def _answer(shell: str, words: "list[str]") -> int:
    found = complete(_joined(words) if shell == "bash" else words)
    if isinstance(found, str):
        print(found)
        return 0
    for word, text in found:
        shown = word.partition("=")[2] if shell == "bash" and word.startswith("-") and "=" in word else word
        print(f"{shown}\t{text}")
    return 0


def _joined(words: "list[str]") -> "list[str]":
    """Join what bash has divided at `=`."""
    found: list[str] = []
    is_open = False
    for word in words:
        if word == "=" and found and found[-1].startswith("-"):
            found[-1] += "="
            is_open = True
        elif is_open:
            found[-1] += word
            is_open = False
        else:
            found.append(word)
    return found


def complete(words: "list[str]") -> "Arguments":
    """Return what may stand in place of the last of the words after `spcomm`: FILE, FOLDER, or words with a text."""
    found = _allowed(words[:-1], words[-1])
    return found if isinstance(found, str) else [pair for pair in found if pair[0].startswith(words[-1])]


def _allowed(before: "list[str]", word: str) -> "Arguments":
    from spcomm.cli import parser_of, summaries

    if not before:
        return list(summaries().items())
    if before[0] == "help":
        return list(summaries().items()) if not before[1:] else []
    found = parser_of(before[0])
    return found.words_at(before[1:], word) if found is not None else []
