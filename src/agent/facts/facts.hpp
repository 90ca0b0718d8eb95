#pragma once

#include <string_view>

#include "agent/host/host.hpp"
#include "wire/facts.hpp"

namespace remote::agent {

// Answers the whole request. `files` followed it (wire::FactsRequest::code). GPUs, the
// Python environment and the disks are read side by side. A disk that hangs leaves a thread behind,
// which never ends: such a process can only be left by _exit(2).
wire::FactsReply collect_facts(const Host& host, const wire::FactsRequest& request, std::string_view files);

}  // namespace remote::agent
