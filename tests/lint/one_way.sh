#!/bin/sh
# Fails if code does something in another way than with the function that exists for it. Usage: one_way.sh SOURCE_DIR
set -eu
cd -- "${1:?source folder}"
bad=0
only() { # only FILE PATTERN INSTEAD: only this file in src may contain the pattern
  # src/static is not our code: it replaces archives of other libraries
  found=$(grep -rnE --include='*.cpp' --include='*.hpp' -e "$2" src include | grep -v -e "^$1:" -e '^src/static/' || true)
  if [ -n "$found" ]; then
    printf '%s\n' "$found"
    echo "  instead: $3"
    bad=1
  fi
}
only 'src/base/json.hpp' '\.dump\(' 'dump_json() of base/json.hpp or to_json_text() of wire/json_text.hpp, which take any bytes'
only src/base/strings.cpp '[!=]= 1 \? "s?"' 'counted() of base/strings.hpp'
only src/cli/cli.cpp 'spdlog' 'base/log.hpp'
# Below cli/, the fix for an error is a Remedy, because another program would word it differently. A finding of `check`
# has a Fix instead, which is documented to be a command line.
# shellcheck disable=SC2016  # the backquote is part of the messages
if grep -rnE --include='*.cpp' --include='*.hpp' '^[^/]*"[^"]*(`remote [a-z]|remote job-|(use|add|leave|name|with|instead:) --[a-z])' src include |
  grep -v -e ^src/cli/ -e ^src/sandbox/ -e ^src/agent/job/exec_job.cpp -e ^src/agent/run/exec_run.cpp -e ^src/agent/stacks/process_stack.cpp -e '^src/project/check/[a-z_]*findings\.cpp'; then
  echo "  instead: Error::mended_by(); hint_of() in src/cli/context.cpp has the words"
  bad=1
fi
# Code must not read sentences to find out what happened, not even our own: an answer has a word for it, an Error a
# Cause. Sentences of other programs, and those that torch_agent.py writes to a job's output, are read only by the agent
# and in these files.
others='base/login_shell|servers/(sync|container|sent_state|authorize)|config/yaml_reader|ssh/(connector|auth|masters)|project/report/moments|sandbox/node'
if grep -rnE --include='*.cpp' --include='*.hpp' '(starts_with|ends_with|contains|find)\("[^"]*[A-Za-z]{2} [A-Za-z]{2}[^"]*"' src include |
  grep -vE "^src/(cli/|agent/|($others)\\.cpp:)"; then
  echo "  instead: a word of the answer, or Error::cause()"
  bad=1
fi
# The library is a guest in its program: it never ends a process, and changes no environment, handler or terminal.
rooms='src/base src/config src/ssh src/servers src/jobs src/launch src/project'
pattern='\b(exit|_exit|quick_exit|abort|setenv|unsetenv|putenv|isatty|tcsetattr)\(|(^|[ (!=])(::|std::)signal\(|sigaction|/dev/tty|std::c(out|err|in)\b|\bprintf\('
# shellcheck disable=SC2086  # rooms are words
if grep -rnE --include='*.cpp' --include='*.hpp' "$pattern" $rooms | grep -v '//.*exit(' |
  grep -v 'tcsetattr(.*// a terminal of its own'; then
  echo "  instead: throw, or leave it to src/cli"
  bad=1
fi
[ "$bad" = 0 ] && echo "one way: nothing is done by other means"
exit "$bad"
