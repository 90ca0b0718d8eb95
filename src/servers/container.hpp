#pragma once

#include <optional>
#include <string>

#include <remote/cancel.hpp>
#include <remote/launch.hpp>

#include "config/config.hpp"
#include "servers/action.hpp"
#include "ssh/connection.hpp"

// Containers that jobs run in: which one is meant, and whether it can be had on a server
// (src/server/container_check.sh).

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

// What container_check.sh says.
struct ContainerAnswer {
  enum class State { ready, missing, failed };  // missing: the image is
  State state = State::failed;
  std::optional<ContainerEngine> engine;
  bool rootless = false;
  std::string reason;  // for failed; foreign text

  void take(AnswerLine& line);
};
// `fetch`: gets the image, also a newer one; else it only looks.
Action<ContainerAnswer> container_action(const config::Config& config, const config::Server& server,
                                         const Container& container, bool fetch);

}  // namespace remote::servers
