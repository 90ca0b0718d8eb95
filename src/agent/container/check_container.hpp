#pragma once

#include "agent/host/host.hpp"
#include "wire/container.hpp"

namespace remote::agent {

// Finds an engine and the image before a job starts in a container. Pulls the image if requested.
wire::ContainerReply check_container(const Host& host, const wire::ContainerRequest& request);

}  // namespace remote::agent
