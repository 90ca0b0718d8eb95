#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "wire/launch.hpp"

// The secrets of the links between the servers of a launch or a sweep.

namespace remote::jobs {

// Returns random tokens for the members: all of the servers but the first.
wire::LinkTokens make_link_tokens(std::size_t servers);

// Returns the tokens that one server gets: the first server all of them, a member only its own.
wire::LinkTokens select_link_tokens(const wire::LinkTokens& all, const std::vector<std::string>& servers,
                                    const std::string& own);

}  // namespace remote::jobs
