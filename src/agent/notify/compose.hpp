#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "wire/notify.hpp"

// The text of a notification (docs/notify.md).

namespace remote::agent {

struct Notification {
  std::string state;       // as in docs/notify.md: "failed"
  std::string why;         // for the user; may be ""
  std::string lines = {};  // the last lines of the most informative rank

  static constexpr auto fields() {
    return wire::field_list(wire::field("state", &Notification::state),
                            wire::field("why", &Notification::why),
                            wire::field("lines", &Notification::lines));
  }
};

// The JSON for commands, and for URLs with the format `json`. `now` is the time since the epoch.
std::string compose_json(const wire::NotifySpec& spec, const Notification& notification,
                         std::chrono::seconds now);

// The input of post.py.
struct Post {
  std::string url;
  std::map<std::string, std::string> headers;
  std::string body;

  static constexpr auto fields() {
    return wire::field_list(wire::field("url", &Post::url), wire::field("headers", &Post::headers),
                            wire::field("body", &Post::body));
  }
};
Post compose_post(const wire::NotifySpec& spec, const Notification& notification, std::chrono::seconds now);

// The text as a single line of at most 500 characters, without characters that a terminal would interpret.
std::string compose_line(std::string_view text);

}  // namespace remote::agent
