#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/fields.hpp"

// The notification about a launch (docs/notify.md).

namespace remote::wire {

enum class NotifyShape { json, ntfy, slack };
template <>
inline constexpr std::array enum_names<NotifyShape> = std::to_array<std::string_view>({"json", "ntfy",
                                                                                       "slack"});

// How to notify, and about which launch. It is stored as JSON in the file `notify` of the launch's first job,
// and is secret.
struct NotifySpec {
  std::string url{};  // "": runs `command`
  NotifyShape shape = NotifyShape::json;
  std::string command{};        // a shell command line
  std::string folder = "~";     // its working directory
  std::string launch{};         // the key of the launch
  std::string name{};           // of the launch; may be ""
  std::string project{};        // its name
  std::string ranks_command{};  // its command, for display, without secrets
  std::vector<std::string> servers{};
  int ranks = 0;
  std::int64_t began = 0;  // seconds since the epoch, by the client's clock

  static constexpr auto fields() {
    using S = NotifySpec;
    return field_list(field("url", &S::url), field("shape", &S::shape), field("command", &S::command),
                      field("folder", &S::folder), field("launch", &S::launch), field("name", &S::name),
                      field("project", &S::project),
                      field("ranks_command", &S::ranks_command, at_most(std::size_t{16} << 20U)),
                      field("servers", &S::servers), field("ranks", &S::ranks, in_range(0, 1 << 30)),
                      field("began", &S::began));
  }
};

// Sends a test notification, once. A NotificationToTry in CBOR follows as data, because requests are logged.
struct TryNotifyRequest {
  static constexpr std::string_view kind = "try_notify";

  static constexpr auto fields() { return field_list(); }
};

struct NotificationToTry {
  NotifySpec spec;
  std::string activate;  // shell text that enters the Python environment, for servers without Python on PATH
  std::string program;   // the text of post.py

  static constexpr auto fields() {
    using R = NotificationToTry;
    return field_list(field("spec", &R::spec), field("activate", &R::activate, at_most(1U << 20U)),
                      field("program", &R::program));
  }
};

struct TryNotifyReply {
  static constexpr std::string_view kind = "try_notify";

  bool is_sent = false;
  std::string answer{};  // the response, or the reason of the failure

  static constexpr auto fields() {
    return field_list(field("is_sent", &TryNotifyReply::is_sent),
                      field("answer", &TryNotifyReply::answer, a_line(2000)));
  }
};

}  // namespace remote::wire
