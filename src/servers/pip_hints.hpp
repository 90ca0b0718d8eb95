#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <remote/facts.hpp>

namespace remote::servers {

// The lines that name the cause in the stderr of pip, uv, conda, git or a compiler. Returns at most `most` of
// the last ones; "" if there are none.
std::string decisive_lines(std::string_view err, std::size_t most);

bool says_disk_full(std::string_view err);

// A hint after such a program failed, based only on these lines; "" if the cause is not certain.
// `own_environment`: remote created the environment. `disks`: the disks that the program writes to, in their
// state afterwards.
std::string pip_hint(std::string_view err, bool own_environment, const std::vector<DiskFacts>& disks = {});

}  // namespace remote::servers
