#pragma once

#include <optional>
#include <vector>

#include <remote/facts.hpp>

#include "agent/host/host.hpp"
#include "wire/facts.hpp"

namespace remote::agent {

// The folder, or its nearest ancestor that exists.
Path find_nearest_folder(const Path& folder);

// The file system of a folder, or of its nearest ancestor that exists. nullopt if shared memory is missing,
// or if statfs(2) fails. Blocks if a network file system hangs. Any thread.
std::optional<DiskFacts> read_disk(const Host& host, wire::DiskPlace place, const Path& folder);

// The places that the request names. Any thread.
std::vector<DiskFacts> read_disks(const Host& host, const wire::FactsRequest& request);

}  // namespace remote::agent
