# fish completion of remote:  remote completion fish | source
function __remote_complete
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    # The remote of $PATH, whichever was typed: ./remote may be anybody's.
    set -l lines (command remote __complete line $typed[2..-1] "$current" 2>/dev/null)
    switch "$lines[1]"
        case ':files'
            __fish_complete_path "$current"
        case ':folders'
            __fish_complete_directories "$current"
        case ':words'
            set -e lines[1]
            test (count $lines) -gt 0; and printf '%s\n' $lines
    end
end
complete -c remote -f -k -a '(__remote_complete)'
