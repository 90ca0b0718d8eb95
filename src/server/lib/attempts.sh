# Part of what reads a job's output.
# shellcheck shell=sh

# of_last_attempt: of the text on stdin, what comes after the last line that divides attempts (docs/resilience.md) or the tries of a
# point of a sweep.
of_last_attempt() {
  LC_ALL=C sed -n '/^remote: the \(ranks begin anew\|workers begin anew\|point begins again\) (/{s/.*//;x;$d;b
}
H
${x;s/^\n//;p
}'
}
