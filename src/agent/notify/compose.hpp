#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "wire/notify.hpp"

// The text of a notification (docs/notify.md).

namespace remote::agent {

struct Notification {
  std::string state;       // as docs/notify.md has it: "failed"
  std::string why;         // for people; may be ""
  std::string lines = {};  // the last ones of the rank that explains more

  static constexpr auto fields() {
    return wire::field_list(wire::field("state", &Notification::state),
                            wire::field("why", &Notification::why),
                            wire::field("lines", &Notification::lines));
  }
};

// The JSON for commands and for URLs of the shape `json`. `now`: since the epoch.
std::string compose_json(const wire::NotifySpec& spec, const Notification& notification,
                         std::chrono::seconds now);

// What post.py sends.
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

// The text as one line of at most 500 characters, without those that a terminal would obey.
std::string compose_line(std::string_view text);

}  // namespace remote::agent
