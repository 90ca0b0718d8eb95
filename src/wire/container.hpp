#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <remote/launch.hpp>

#include "wire/fields.hpp"

// Containers that jobs run in.

namespace remote::wire {

// Searches for an engine that can run jobs in containers of this image.
struct ContainerRequest {
  static constexpr std::string_view kind = "container";

  std::optional<ContainerEngine>
      engine{};  // nullopt: the first one that has the image, or otherwise the first one that works
  std::string image;
  std::string project{};       // the folder that relative paths of apptainer images refer to
  std::string prologue{};      // shell text that runs before the engine
  bool fetch = false;          // fetch the image, or a newer one
  bool is_login_node = false;  // it is a Slurm login node, so only its nodes need the engine

  static constexpr auto fields() {
    using R = ContainerRequest;
    return field_list(field("engine", &R::engine), field("image", &R::image, a_line(4096)),
                      field("project", &R::project, at_most(4096)),
                      field("prologue", &R::prologue, at_most(1U << 20U)), field("fetch", &R::fetch),
                      field("is_login_node", &R::is_login_node));
  }
};

enum class ContainerOutcome {
  ready,
  missing,
  failed,  // see `reason`
};

struct ContainerReply {
  static constexpr std::string_view kind = "container";

  ContainerOutcome outcome = ContainerOutcome::failed;
  std::optional<ContainerEngine> engine{};  // set unless it failed
  bool rootless = false;                    // the engine runs as the user, without root privileges
  std::string reason{};

  static constexpr auto fields() {
    using R = ContainerReply;
    return field_list(field("outcome", &R::outcome), field("engine", &R::engine),
                      field("rootless", &R::rootless), field("reason", &R::reason, a_line(2000)));
  }
};

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::ContainerEngine> = {
    std::string_view("docker"), std::string_view("podman"), std::string_view("apptainer")};
template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::ContainerOutcome> = {
    std::string_view("ready"), std::string_view("missing"), std::string_view("failed")};
