#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace remote::launch {

// The tags of a job that got none: the words of its command (without the interpreter, secrets and the text of
// programs), then `extra`; each once. Of a shell line, the words of the programs that it starts: no
// operators, builtins, redirections and words that the shell would replace.
std::vector<std::string> default_tags(std::string_view command, const std::vector<std::string>& extra);

}  // namespace remote::launch
