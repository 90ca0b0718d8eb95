#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <remote/facts.hpp>

namespace remote::servers {

// The lines of what pip, uv, conda, git or a compiler wrote to stderr that name the cause, at most so many of
// the last ones; "" if there are none.
std::string decisive_lines(std::string_view err, std::size_t most);

bool says_disk_full(std::string_view err);

// What to try after such a program failed, by these lines alone; "" if that is not certain.
// `own_environment`: remote made the environment that was written to. `disks`: those that the program writes
// to, as they are after it.
std::string pip_hint(std::string_view err, bool own_environment, const std::vector<DiskFacts>& disks = {});

}  // namespace remote::servers
