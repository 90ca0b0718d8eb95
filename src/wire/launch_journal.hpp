#pragma once

#include <array>
#include <optional>
#include <string>
#include <variant>

#include "wire/cause.hpp"

// The journal of a launch's supervisor (`lifeline.journal` in the folder of its first job on the server),
// with one entry per line. If the supervisor dies, the next one restores its state and decisions from it.

namespace remote::wire {

// The first message of another server arrived.
struct ServerHeard {
  static constexpr std::string_view kind = "heard";
  std::string server;
  static constexpr auto fields() { return field_list(field("server", &ServerHeard::server, at_most(256))); }
  friend bool operator==(const ServerHeard&, const ServerHeard&) = default;
};

enum class GoneHow {
  said_bye,  // its jobs have ended
  lost,      // it was silent for too long
  left,      // it no longer takes part
};

struct ServerGone {
  static constexpr std::string_view kind = "gone";
  std::string server;
  GoneHow how = GoneHow::said_bye;
  static constexpr auto fields() {
    return field_list(field("server", &ServerGone::server, at_most(256)), field("how", &ServerGone::how));
  }
  friend bool operator==(const ServerGone&, const ServerGone&) = default;
};

// An elastic launch continues without a server.
struct ServerLeftOut {
  static constexpr std::string_view kind = "left_out";
  std::string server;
  EndReason reason;
  static constexpr auto fields() {
    return field_list(field("server", &ServerLeftOut::server, at_most(256)),
                      field("reason", &ServerLeftOut::reason));
  }
  friend bool operator==(const ServerLeftOut&, const ServerLeftOut&) = default;
};

// The jobs of the launch are being stopped.
struct LaunchEnding {
  static constexpr std::string_view kind = "ending";
  EndReason reason;
  static constexpr auto fields() { return field_list(field("reason", &LaunchEnding::reason)); }
  friend bool operator==(const LaunchEnding&, const LaunchEnding&) = default;
};

// No other attempt follows.
struct AttemptsOver {
  static constexpr std::string_view kind = "attempts_over";
  std::optional<EndReason> reason{};  // absent: nothing has to be stopped
  std::optional<NoRestart> why{};     // absent: no restart was left, or another server decided
  static constexpr auto fields() {
    return field_list(field("reason", &AttemptsOver::reason), field("why", &AttemptsOver::why));
  }
  friend bool operator==(const AttemptsOver&, const AttemptsOver&) = default;
};

using LaunchEntry = std::variant<ServerHeard, ServerGone, ServerLeftOut, LaunchEnding, AttemptsOver>;

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::GoneHow> = {
    std::string_view("bye"), std::string_view("lost"), std::string_view("left")};
