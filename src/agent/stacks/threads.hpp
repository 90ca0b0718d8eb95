#pragma once

#include <string_view>
#include <vector>

#include <remote/launch.hpp>

namespace remote::agent {

// Parse a dump of all threads of a process. The main thread comes first. Frames have py-spy's form,
// "forward (/a/train.py:12)". Texts are valid in messages, and long dumps are cut.
std::vector<ThreadStack> parse_py_spy(std::string_view dump, int pid);
std::vector<ThreadStack> parse_faulthandler(std::string_view dump);

}  // namespace remote::agent
