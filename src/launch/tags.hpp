#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace remote::launch {

// The default tags of a job: the words of its command (without the interpreter, secrets and inline programs),
// then `extra`, without duplicates. For a shell command line, the words of the programs that it starts,
// without operators, builtins, redirections and words that the shell would expand.
std::vector<std::string> default_tags(std::string_view command, const std::vector<std::string>& extra);

}  // namespace remote::launch
