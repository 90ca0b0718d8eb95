#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "wire/launch.hpp"

// The secrets for the links between the servers of a launch or a sweep.

namespace remote::jobs {

// Returns random tokens for the members, which are all servers except the first.
wire::LinkTokens make_link_tokens(std::size_t servers);

// Returns one server's tokens: all of them for the first server, only its own for a member.
wire::LinkTokens select_link_tokens(const wire::LinkTokens& all, const std::vector<std::string>& servers,
                                    const std::string& own);

}  // namespace remote::jobs
