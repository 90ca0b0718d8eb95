# Part of what reads a job's output.
# shellcheck shell=sh

# of_last_attempt: of the text on stdin, what comes after the last line that divides attempts (docs/resilience.md).
of_last_attempt() {
  LC_ALL=C sed -n '/^remote: the \(ranks\|workers\) begin anew (/{s/.*//;x;$d;b
}
H
${x;s/^\n//;p
}'
}
