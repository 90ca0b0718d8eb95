#pragma once

#include <optional>
#include <string>

#include <remote/cancel.hpp>
#include <remote/launch.hpp>

#include "config/config.hpp"
#include "ssh/connection.hpp"
#include "wire/container.hpp"

// The containers that jobs run in: selects one, and checks whether it is available on a server
// (src/agent/container/check_container.hpp).

namespace remote::servers {

// A container that is available on a server.
struct ContainerRun {
  Container container;    // with a specific engine
  bool rootless = false;  // the engine runs as the user, without root privileges
  std::string prologue;   // shell text that runs on the server before the engine; may be ""
};

// The engine's name for the server's scripts: "docker"; "": any.
std::string engine_word(const Container& container);

// The container of a server's jobs. `image` is the requested image, which replaces the configured one;
// "none": no container. Throws Error (usage) for a container without an image, and for an invalid image name.
std::optional<Container> container_of(const config::Server& server, const std::optional<std::string>& image);

// Finds the engine and the image, and fetches the image if requested. A Slurm login node does not need the
// engine, because its nodes may have it. Throws Error that names the server if nothing can run there.
ContainerRun ready_container(ssh::Connection& connection, const config::Config& config,
                             const config::Server& server, const Container& container, const Cancel& cancel);

// The request to the server's agent. `fetch`: fetches the image, or a newer one; otherwise it only checks.
wire::ContainerRequest container_request(const config::Config& config, const config::Server& server,
                                         const Container& container, bool fetch);

}  // namespace remote::servers
