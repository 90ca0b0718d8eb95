#pragma once

#include "agent/host/host.hpp"
#include "wire/sick_mark.hpp"

namespace remote::agent {

// Removes the mark, if there is one. Throws std::runtime_error if this fails.
wire::ClearSickMarkReply clear_sick_mark(const Host& host, const wire::ClearSickMarkRequest& request);

}  // namespace remote::agent
