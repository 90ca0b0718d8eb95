#pragma once

#include <string>
#include <vector>

#include "wire/stacks.hpp"

namespace remote::agent {

// Whether an answer shows that all ranks of these jobs are only waiting for others: the stacks of all their
// threads are equal in both samples, the main thread is in a collective operation or a rendezvous, and the
// process wrote nothing in between.
bool shows_waiting(const std::vector<wire::WhyReply>& answer, const std::vector<std::string>& ids);

}  // namespace remote::agent
