#pragma once

#include <string_view>

#include "agent/host/host.hpp"
#include "wire/facts.hpp"

namespace remote::agent {

// Answers the whole request. `files` is the text that followed it (wire::FactsRequest::code). GPUs, the
// Python environment and the disks are read in parallel. If a disk hangs, its thread never ends, so the
// process must then exit with _exit(2).
wire::FactsReply collect_facts(const Host& host, const wire::FactsRequest& request, std::string_view files);

}  // namespace remote::agent
