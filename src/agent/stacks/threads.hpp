#pragma once

#include <string_view>
#include <vector>

#include <remote/launch.hpp>

namespace remote::agent {

// These parse a dump of all threads of a process. The main thread comes first. Frames have py-spy's format,
// "forward (/a/train.py:12)". Texts are made valid for messages, and long dumps are truncated.
std::vector<ThreadStack> parse_py_spy(std::string_view dump, int pid);
std::vector<ThreadStack> parse_faulthandler(std::string_view dump);

}  // namespace remote::agent
