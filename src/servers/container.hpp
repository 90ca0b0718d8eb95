#pragma once

#include <optional>
#include <string>

#include <remote/cancel.hpp>
#include <remote/launch.hpp>

#include "config/config.hpp"
#include "ssh/connection.hpp"
#include "wire/container.hpp"

// Containers that jobs run in: which one is meant, and whether it can be had on a server
// (src/agent/container/check_container.hpp).

namespace remote::servers {

// A container that a server was found ready for.
struct ContainerRun {
  Container container;    // its engine is named
  bool rootless = false;  // the engine runs as the login, without root's rights
  std::string prologue;   // sh text that runs on the server before the engine; may be ""
};

// As the server's scripts take it: "docker"; "": any.
std::string engine_word(const Container& container);

// The container of a server's jobs. `image`: that of a request, in place of the configured one; "none": no
// container. Throws Error (usage) for a container without an image, and for what cannot be an image's name.
std::optional<Container> container_of(const config::Server& server, const std::optional<std::string>& image);

// Looks for the engine and the image, and fetches the image where it is asked for. A login node of Slurm need
// not have the engine: its nodes may. Throws Error that names the server: nothing can run there.
ContainerRun ready_container(ssh::Connection& connection, const config::Config& config,
                             const config::Server& server, const Container& container, const Cancel& cancel);

// The question to the server's agent. `fetch`: fetches the image, or a newer one; otherwise it only looks.
wire::ContainerRequest container_request(const config::Config& config, const config::Server& server,
                                         const Container& container, bool fetch);

}  // namespace remote::servers
